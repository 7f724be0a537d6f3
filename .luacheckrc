std = "lua54"
codes = true
max_line_length = 100

files["spec"] = { std = "+busted" }
files["lua/tracefs/meta"] = {
  -- Stubs: parameters are there to be named, and bodies are empty.
  ignore = { "212", "241" },
}
files[".busted"] = { std = "min" }
files["rockspec"] = { std = "+rockspec" }
