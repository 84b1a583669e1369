"""What an operator declares: plans, services, workloads' levels; read with the line and column of every mistake."""
