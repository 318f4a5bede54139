-- Builds the globals of a run. `rust` holds the functions of this folder's files, `lua` the globals of the state.
local rust, lua = ...
local type, select, error, unpack = lua.type, lua.select, lua.error, lua.unpack
local charge, raise, number_text = rust.charge, rust.raise, rust.number_text
local native_pcall, native_xpcall, native_tostring, native_tonumber = lua.pcall, lua.xpcall, lua.tostring, lua.tonumber

local base = {
  _VERSION = "Lua 5.1",
  _GOPHER_LUA_VERSION = "GopherLua 0.1",
  error = error, ipairs = lua.ipairs, next = lua.next, select = select,
  type = type, print = rust.print, tonumber = rust.tonumber,
  -- gopher-lua's, a print for its own debugging.
  _printregs = rust.print,
}

-- A C function reports the line of its caller, which would be a line of this file. So arguments are checked here.
local function check_table(value, name)
  if type(value) ~= "table" then
    raise("bad argument #1 to " .. name .. " (table expected, got " .. type(value) .. ")")
  end
end

-- The C function counts results in an `int`. A larger count wraps around, and the stack is overwritten.
local INT_MAX, UNPACKED_MAX = 2147483647, 8000

function base.unpack(list, from, to)
  check_table(list, "unpack")
  local first, last = from, to
  if first == nil then first = 1 end
  if last == nil then last = #list end
  first, last = native_tonumber(first), native_tonumber(last)
  if first and last then
    if first > last then return end
    if not (last - first < UNPACKED_MAX and first >= -INT_MAX and last < INT_MAX) then
      raise("too many results to unpack")
    end
  end
  return unpack(list, from, to)
end

-- Results pass through `pcall` in one table. The C function has room for about twenty of them, and a debug build of Lua
-- aborts the process if there are more.
local function pack(...)
  return { n = select("#", ...), ... }
end

local function call_packed(f, ...)
  return pack(f(...))
end

-- Returns an error as the script sees it, or raises it again if it must end the run. It is raised here because an error
-- from Rust writes a traceback, which takes a millisecond on a deep stack.
local function caught(e)
  local is_caught, value = rust.caught(e)
  if not is_caught then error(e, 0) end
  return value
end

local function finish(ok, result)
  if ok then return true, unpack(result, 1, result.n) end
  return false, caught(result)
end

function base.pcall(...)
  if select("#", ...) == 0 then raise("bad argument #1 to pcall (value expected)") end
  local f = ...
  if type(f) ~= "function" then return false, "attempt to call a " .. type(f) .. " value" end
  return finish(native_pcall(call_packed, ...))
end

function base.xpcall(f, handler)
  if type(handler) ~= "function" then
    raise("bad argument #2 to xpcall (function expected, got " .. type(handler) .. ")")
  end
  return finish(native_xpcall(function() return call_packed(f) end, function(e) return (handler(caught(e))) end))
end

function base.assert(...)
  local ok, message = ...
  if ok then return ... end
  if message == nil then message = "assertion failed!" end
  if type(message) ~= "string" then
    raise("bad argument #2 to assert (string expected, got " .. type(message) .. ")")
  end
  raise(message)
end

-- gopher-lua visits keys in the order in which they were set, and scripts that build lists from maps rely on it. The
-- rewritten source passes its tables to `ordered`. `orders` maps a table to the names of its fields in order. Each name
-- is also a key there, for lookups.
local rawset, rawget, setmetatable, next = lua.rawset, lua.rawget, lua.setmetatable, lua.next
local orders = setmetatable({}, { __mode = "k" })

local function add_name(t, name)
  local order = orders[t]
  if not order then
    order = {}
    orders[t] = order
  end
  if not order[name] then
    order[name] = true
    order[#order + 1] = name
  end
end

local order_metatable = {
  __newindex = function(t, key, value)
    if key == nil then raise("table index is nil") end
    if key ~= key then raise("table index is NaN") end
    rawset(t, key, value)
    if type(key) == "string" then add_name(t, key) end
  end,
}

local function ordered(t, ...)
  -- This raises for anything but a table. A string in `orders` would outlive the run.
  setmetatable(t, order_metatable)
  for i = 1, select("#", ...) do
    add_name(t, (select(i, ...)))
  end
  return t
end

-- Visits keys that are not strings first, beginning with the list, then names in their order, then all other names.
function base.pairs(...)
  local t = ...
  check_table(t, "pairs")
  local order = orders[t]
  if not order then return lua.pairs(t) end
  local key, i, phase = nil, 0, 1
  return function()
    local value
    if phase == 1 then
      repeat key, value = next(t, key) until type(key) ~= "string"
      if key ~= nil then return key, value end
      phase = 2
    end
    while phase == 2 do
      i = i + 1
      local name = order[i]
      if name == nil then
        phase, key = 3, nil
      else
        value = rawget(t, name)
        if value ~= nil then return name, value end
      end
    end
    repeat key, value = next(t, key) until key == nil or (type(key) == "string" and not order[key])
    return key, value
  end, t, nil
end

-- C and Go format small integers alike, and nearly all numbers are small integers.
function base.tostring(...)
  local v = ...
  if type(v) == "number" and (v == 0 or v % 1 ~= 0 or v >= 1e14 or v <= -1e14) then
    return number_text(v)
  end
  return native_tostring(...)
end

-- Formats the numbers of a concatenation as Go does. The rewritten source has `dots` between any two operands. `..` is
-- right-associative, so the metamethod gets the right operand first, and then the left one. `dots` is a userdata because
-- a script could store values in a table.
local dots, right = lua.newproxy(true), nil

local function concat_text(v)
  local kind = type(v)
  if kind == "string" then return v end
  if kind == "number" then return base.tostring(v) end
  right = nil
  raise("attempt to concatenate a " .. kind .. " value")
end

-- A longer copy takes more time than the instructions that it counts as, so its bytes are charged.
local COPIED_FREE = 4096

lua.getmetatable(dots).__concat = function(a, b)
  if a == dots then
    right = concat_text(b)
    return dots
  end
  local text = right
  right = nil
  if text == nil then raise("attempt to concatenate a userdata value") end
  text = concat_text(a) .. text
  if #text > COPIED_FREE then charge(#text / 8) end
  return text
end

-- Each function is a separate chunk, because Karmada's message has the position `<string>:1`.
for _, name in lua.ipairs({
  "collectgarbage", "dofile", "getfenv", "getmetatable", "load", "loadfile", "loadstring", "module",
  "newproxy", "rawequal", "rawget", "rawset", "setfenv", "setmetatable",
}) do
  base[name] = lua.loadstring("local error = ... return function() error('call function " .. name
    .. " is not supported in karmada customized resourceinterpreter.') end", "=<string>")(error)
end

local table_base = {
  concat = rust["table.concat"], getn = lua.table.getn,
}

function table_base.maxn(list)
  check_table(list, "maxn")
  charge(#list)
  return lua.table.maxn(list)
end

-- C moves the elements in a loop, which the hook does not see.
function table_base.insert(list, ...)
  check_table(list, "insert")
  local n, at = select("#", ...), ...
  if n == 0 or n > 2 then raise("wrong number of arguments to insert") end
  if n == 1 then return lua.table.insert(list, at) end
  if type(at) ~= "number" then raise("bad argument #2 to insert (number expected, got " .. type(at) .. ")") end
  if at ~= at then raise("bad argument #2 to insert (number expected, got NaN)") end
  at = at < 0 and lua.math.ceil(at) or lua.math.floor(at)
  -- gopher-lua moves nothing for a position outside of the list. C would move up to two thousand million absent elements
  -- for a position in front of the list, or for one that has more than 31 bits.
  if at < 1 or at > #list then
    rawset(list, at, (select(2, ...)))
    return
  end
  charge(#list - at)
  return lua.table.insert(list, ...)
end

function table_base.remove(list, ...)
  check_table(list, "remove")
  local at = ...
  if at ~= nil and type(at) ~= "number" then
    raise("bad argument #2 to remove (number expected, got " .. type(at) .. ")")
  end
  if at and at < #list then charge(#list - at) end
  return lua.table.remove(list, at)
end

-- Without a comparison function, C sorts without an instruction of Lua: a second for half a million elements, or for
-- fewer that are long strings. The same applies to a comparison function in C, such as `next`. So a long list is sorted
-- with a function of Lua, whose instructions the hook counts.
local function less(a, b)
  return a < b
end

function table_base.sort(list, ...)
  check_table(list, "sort")
  charge(#list * 20)
  if #list <= 50 then return lua.table.sort(list, ...) end
  local is_less = ...
  if type(is_less) ~= "function" then
    if is_less ~= nil then return lua.table.sort(list, ...) end
    return lua.table.sort(list, less)
  end
  return lua.table.sort(list, function(a, b) return (is_less(a, b)) end)
end

local string_base = {}
for _, name in lua.ipairs({
  "byte", "char", "dump", "find", "format", "gsub", "len", "lower", "match", "rep", "reverse", "sub", "upper",
}) do
  string_base[name] = rust["string." .. name]
end

local next_match = rust["string.gmatch"]
function string_base.gmatch(s, pattern)
  local at = 1
  local function step(after, ...)
    at = after
    return ...
  end
  step(next_match(s, pattern, nil))
  return function()
    if at then return step(next_match(s, pattern, at)) end
  end
end
string_base.gfind = string_base.gmatch

local math_base = {}
for name, value in lua.pairs(lua.math) do
  math_base[name] = value
end
math_base.huge = 1.7976931348623157e308
math_base.randomseed = rust.randomseed

function math_base.mod(a, b)
  return a % b
end

function math_base.random(...)
  local n, from, to = select("#", ...), ...
  if n == 0 then return rust.random() end
  if n == 1 then from, to = 1, from end
  if type(from) ~= "number" or type(to) ~= "number" then
    raise("bad argument #1 to random (number expected, got " .. type(type(from) == "number" and to or from) .. ")")
  end
  if from > to then raise("bad argument to random (interval is empty)") end
  return from - from % 1 + lua.math.floor(rust.random() * (to - from + 1))
end

local os_base = { date = rust["os.date"], time = rust["os.time"] }

local kube_base = {}
for _, name in lua.ipairs({ "accuratePodRequirements", "getPodDependencies", "getResourceQuantity", "resourceAdd" }) do
  kube_base[name] = rust["kube." .. name]
end

-- Returns a function that copies a table whose keys are names. A constructor makes the copy: it knows the size, and does
-- not iterate. Each run gets copies of all tables of the library.
local function copier(from)
  local fields = {}
  for name in lua.pairs(from) do
    fields[#fields + 1] = name .. " = from." .. name
  end
  local source = "local from = ... return function() return {" .. lua.table.concat(fields, ", ") .. "} end"
  return lua.loadstring(source, "=[kctl]")(from)
end

local copy_base, copy_table, copy_math, copy_os = copier(base), copier(table_base), copier(math_base), copier(os_base)
local copy_string, copy_kube = copier(string_base), copier(kube_base)

local function loadlib()
  raise("loadlib is not supported")
end

local function new_package()
  local package = { loaded = {}, preload = {}, loadlib = loadlib }
  package.preload.kube = function() return copy_kube() end
  local function preloaded(name)
    return package.preload[name] or "no field package.preload['" .. native_tostring(name) .. "']"
  end
  package.loaders = { preloaded }
  local loaders, loaded = package.loaders, package.loaded
  local function require(name)
    if type(name) ~= "string" then
      raise("bad argument #1 to require (string expected, got " .. type(name) .. ")")
    end
    if loaded[name] then return loaded[name] end
    local tried = ""
    for _, loader in lua.ipairs(loaders) do
      local found = loader(name)
      if type(found) == "function" then
        local module = found(name)
        if loaded[name] == nil then loaded[name] = module == nil and true or module end
        return loaded[name]
      end
      if type(found) == "string" then tried = tried .. "\n\t" .. found end
    end
    raise("module " .. name .. " not found:" .. tried .. ", ")
  end
  return package, require
end

return function()
  -- A script that names `dots` may have left an operand.
  right = nil
  local env = copy_base()
  env._G = env
  env.table, env.math, env.os, env.string = copy_table(), copy_math(), copy_os(), copy_string()
  env.string.__index = env.string
  env.package, env.require = new_package()
  local loaded = env.package.loaded
  loaded._G, loaded.table, loaded.string, loaded.math, loaded.os = env, env.table, env.string, env.math, env.os
  return env, env.string
end, ordered, dots
