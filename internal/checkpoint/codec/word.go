package codec

// Words that many records have are written as their number. Like those of
// fields, numbers are only added.

// wordNumber is the number of a word, 0 for what is none.
//
//nolint:cyclop,funlen,gocyclo // a table
func wordNumber(s string) byte {
	switch s {
	case "run_state":
		return 1
	case "update":
		return 2
	case "values":
		return 3
	case "task":
		return 4
	case "checkpoint":
		return 5
	case "interrupt":
		return 6
	case "resolved":
		return 7
	case "custom":
		return 8
	case "message":
		return 9
	case "input":
		return 10
	case "loop":
		return 11
	case "fork":
		return 12
	case "queued":
		return 13
	case "running":
		return 14
	case "interrupted":
		return 15
	case "cancelling":
		return 16
	case "succeeded":
		return 17
	case "failed":
		return 18
	case "cancelled":
		return 19
	case "timed_out":
		return 20
	case "superseded":
		return 21
	case "scheduled":
		return 22
	case "started":
		return 23
	case "retrying":
		return 24
	case "unassigned":
		return 25
	case "open":
		return 26
	case "answered":
		return 27
	case "consumed":
		return 28
	case "expired":
		return 29
	case "idle":
		return 30
	case "busy":
		return 31
	case "done":
		return 32
	case "returned":
		return 33
	case "waiting":
		return 34
	case "__start__":
		return 35
	case "breakpoint":
		return 36
	case "cancel":
		return 37
	case "fail_node":
		return 38
	case "resume_default":
		return 39
	case "cancel_run":
		return 40
	case "NODE_FAILED":
		return 41
	default:
		return 0
	}
}

// wordText is the inverse of wordNumber; "" is one that this version does not know.
//
//nolint:cyclop,funlen,gocyclo // a table
func wordText(n byte) string {
	switch n {
	case 1:
		return "run_state"
	case 2:
		return "update"
	case 3:
		return "values"
	case 4:
		return "task"
	case 5:
		return "checkpoint"
	case 6:
		return "interrupt"
	case 7:
		return "resolved"
	case 8:
		return "custom"
	case 9:
		return "message"
	case 10:
		return "input"
	case 11:
		return "loop"
	case 12:
		return "fork"
	case 13:
		return "queued"
	case 14:
		return "running"
	case 15:
		return "interrupted"
	case 16:
		return "cancelling"
	case 17:
		return "succeeded"
	case 18:
		return "failed"
	case 19:
		return "cancelled"
	case 20:
		return "timed_out"
	case 21:
		return "superseded"
	case 22:
		return "scheduled"
	case 23:
		return "started"
	case 24:
		return "retrying"
	case 25:
		return "unassigned"
	case 26:
		return "open"
	case 27:
		return "answered"
	case 28:
		return "consumed"
	case 29:
		return "expired"
	case 30:
		return "idle"
	case 31:
		return "busy"
	case 32:
		return "done"
	case 33:
		return "returned"
	case 34:
		return "waiting"
	case 35:
		return "__start__"
	case 36:
		return "breakpoint"
	case 37:
		return "cancel"
	case 38:
		return "fail_node"
	case 39:
		return "resume_default"
	case 40:
		return "cancel_run"
	case 41:
		return "NODE_FAILED"
	default:
		return ""
	}
}
