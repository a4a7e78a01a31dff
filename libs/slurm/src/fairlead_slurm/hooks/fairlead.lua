-- Fairlead's part of job_submit.lua: what is asked of a job that is to run as a pod, and what becomes of its script.
-- Written by `fairlead slurm install`. job_submit.lua calls it, and returns what it returns where that is not SUCCESS:
--
--   dofile("FOLDER/fairlead.lua")
--   function slurm_job_submit(job, partitions, user)
--      return fairlead_job_submit(job, partitions, user)
--   end
--   function slurm_job_modify(job, record, partitions, user)
--      return fairlead_job_modify(job, record, partitions, user)
--   end

local PARTITION = "pods" -- fairlead: setting
local BODY = "exec /bin/false" -- fairlead: setting
local VARIABLES = {"TRACEPARENT"} -- fairlead: setting
local CHECK = "" -- fairlead: setting
local TOKENS = "" -- fairlead: setting
local MARK = "#fairlead: what follows runs in the pod"
local LONGEST = 200000
local NO_VALUE = 4294967294

-- Anything at all as letters and digits: what a user wrote must not become a line of its own.
local function hex(text)
   return (text:gsub(".", function(c) return string.format("%02x", c:byte()) end))
end

local function refuse(why)
   slurm.log_user("fairlead: partition %s: %s", PARTITION, why)
   return slurm.ERROR
end

local function default_partition(partitions)
   for name, partition in pairs(partitions) do
      if partition.flag_default ~= 0 then return name end
   end
   return nil
end

local function goes_to_pods(names)
   for name in string.gmatch(names or "", "[^,]+") do
      if name == PARTITION then return true end
   end
   return false
end

-- GPUs of one node: `gres:gpu:2`, `gres/gpu:h100:2`, `gpu` and so on.
local function gpus(job)
   local count = 0
   for _, field in ipairs({"tres_per_node", "tres_per_job", "tres_per_task", "tres_per_socket"}) do
      for word in string.gmatch(job[field] or "", "[^,]+") do
         if string.find(word, "gpu", 1, true) then
            count = count + (tonumber(string.match(word, "[:=](%d+)$")) or 1)
         end
      end
   end
   return count
end

local function head(job)
   local lines = {"#!/bin/sh"}
   local wanted = {}
   for _, name in ipairs(VARIABLES) do wanted[name] = true end
   for word in string.gmatch(job.comment or "", "%S+") do
      local names = string.match(word, "^env=(.+)$")
      for name in string.gmatch(names or "", "[%a_][%w_]*") do wanted[name] = true end
   end
   for name in pairs(wanted) do
      local value = job.environment and job.environment[name]
      if value ~= nil then lines[#lines + 1] = "#fairlead-env " .. name .. "=" .. hex(value) end
   end
   local count = gpus(job)
   if count > 0 then lines[#lines + 1] = "#fairlead-gpus " .. count end
   for number = 1, (job.argc or 1) - 1 do
      lines[#lines + 1] = "#fairlead-arg " .. hex(job.argv[number])
   end
   lines[#lines + 1] = BODY
   lines[#lines + 1] = "exit 75"
   lines[#lines + 1] = MARK
   return table.concat(lines, "\n") .. "\n"
end

-- The licences that a job asks for, with a token for each GPU: as many are there as Kubernetes has room for. Parts of GPUs take
-- none, and nobody chooses a number of tokens.
local function with_tokens(job)
   local words = {}
   for word in string.gmatch(job.licenses or "", "[^,;]+") do
      if string.match(word, "^%s*([^:=%s]+)") ~= TOKENS then words[#words + 1] = word end
   end
   local count = gpus(job)
   local parts = string.find(" " .. (job.comment or ""), "%sgpu%-[mc]")
   if count > 0 and not parts then words[#words + 1] = string.format("%s:%d", TOKENS, count) end
   return table.concat(words, ",")
end

-- What the gate says of the job: nil where it may stand. Whoever cannot be asked refuses nothing.
local function looked_over(job, user)
   if CHECK == "" or io == nil then return nil end
   local asked = {
      account = job.account, partition = PARTITION, qos = job.qos, comment = job.comment,
      ["job-name"] = job.name, gres = job.tres_per_node, array = job.array_inx,
      user = tostring(user),
   }
   local function number(option, value, suffix)
      if value ~= nil and value > 0 and value < 65534 then asked[option] = string.format("%d", value) .. (suffix or "") end
   end
   number("ntasks", job.num_tasks)
   number("cpus-per-task", job.cpus_per_task)
   if job.time_limit ~= nil and job.time_limit < NO_VALUE then asked.time = string.format("%d", job.time_limit) end
   if job.min_mem_per_node ~= nil and job.min_mem_per_node < NO_VALUE then
      asked.mem = string.format("%dM", job.min_mem_per_node)
   elseif job.min_mem_per_cpu ~= nil and job.min_mem_per_cpu < NO_VALUE then
      asked["mem-per-cpu"] = string.format("%dM", job.min_mem_per_cpu)
   end
   local command = CHECK
   for option, value in pairs(asked) do command = command .. " " .. option .. "=" .. hex(value) end
   local pipe = io.popen(command, "r")
   if pipe == nil then return nil end
   local said = pipe:read("*a") or ""
   pipe:close()
   local refusals = {}
   for mark, why in string.gmatch(said, "(%a+) ([^\n]+)") do
      if mark == "refuse" then refusals[#refusals + 1] = why else slurm.log_user("fairlead: warning: %s", why) end
   end
   if #refusals == 0 then return nil end
   return table.concat(refusals, "; ")
end

function fairlead_job_submit(job, partitions, user)
   local names = job.partition or default_partition(partitions)
   if not goes_to_pods(names) then return slurm.SUCCESS end
   if names ~= PARTITION then return refuse("a job that runs as a pod cannot also ask for other partitions") end
   if user == 0 and (job.user_id == nil or job.user_id == 0 or job.user_id == NO_VALUE) then
      return refuse("jobs of root do not run as pods")
   end
   if job.script == nil or job.script == "" then return refuse("only batch jobs run as pods: use sbatch") end
   if #job.script > LONGEST then return refuse("the script is longer than " .. LONGEST .. " bytes") end
   if string.find(job.script, "\n" .. MARK .. "\n", 1, true) then return refuse("the script holds a line of fairlead's") end
   if job.min_nodes ~= nil and job.min_nodes ~= NO_VALUE and job.min_nodes > 1 then
      return refuse("one pod runs on one node")
   end
   local why = looked_over(job, user)
   if why ~= nil then return refuse(why) end
   if TOKENS ~= "" then job.licenses = with_tokens(job) end
   job.requeue = 1
   job.script = head(job) .. job.script
   return slurm.SUCCESS
end

-- A job that moves in was not seen at its submission, and would run on the node; one that moves out would have no pod.
function fairlead_job_modify(job, record, partitions, user)
   if job.partition ~= nil and job.partition ~= "" and goes_to_pods(job.partition) ~= goes_to_pods(record.partition) then
      return refuse("a job cannot be moved into it or out of it: submit it again")
   end
   return slurm.SUCCESS
end
