"""Policy files and the policy bucket: read, compared, put in force, looked back on."""
