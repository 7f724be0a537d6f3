# What perf script calls for every record of a recording, with the parameters that perf script -g
# python writes: counts and adds up two fields, and prints the CPU time between the first and the
# last record (the start of Python is outside).
import time

count = 0
total = 0
start = 0


def trace_begin():
    global start
    start = time.process_time()


def raw_syscalls__sys_enter(event_name, context, common_cpu, common_secs, common_nsecs,
                            common_pid, common_comm, common_callchain, id, args,
                            perf_sample_dict):
    global count, total
    count += 1
    total += id + common_pid


def sched__sched_switch(event_name, context, common_cpu, common_secs, common_nsecs,
                        common_pid, common_comm, common_callchain, prev_comm, prev_pid,
                        prev_prio, prev_state, next_comm, next_pid, next_prio,
                        perf_sample_dict):
    global count, total
    count += 1
    total += prev_pid + next_pid


def trace_end():
    spent = time.process_time() - start
    print("events=%d cpu_ns=%d sum=%d" % (count, spent * 1e9, total))
