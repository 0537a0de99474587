"""Issue trackers and forges: accounts, quota, cadence, cached answers, webhooks, mirroring."""
