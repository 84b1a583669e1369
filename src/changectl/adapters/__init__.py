"""The outside world behind core's ports: Ansible, ssh, the load generator, files, the clock."""
