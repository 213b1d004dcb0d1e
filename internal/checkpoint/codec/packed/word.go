package packed

// words are texts that many records have, written as their number. Numbers are only
// added, at the end.
var words = [...]string{
	1:  "run_state",
	2:  "update",
	3:  "values",
	4:  "task",
	5:  "checkpoint",
	6:  "interrupt",
	7:  "resolved",
	8:  "custom",
	9:  "message",
	10: "input",
	11: "loop",
	12: "fork",
	13: "queued",
	14: "running",
	15: "interrupted",
	16: "cancelling",
	17: "succeeded",
	18: "failed",
	19: "cancelled",
	20: "timed_out",
	21: "superseded",
	22: "scheduled",
	23: "started",
	24: "retrying",
	25: "unassigned",
	26: "open",
	27: "answered",
	28: "consumed",
	29: "expired",
	30: "idle",
	31: "busy",
	32: "done",
	33: "returned",
	34: "waiting",
	35: "__start__",
	36: "breakpoint",
	37: "cancel",
	38: "fail_node",
	39: "resume_default",
	40: "cancel_run",
	41: "NODE_FAILED",
}

// wordNumbers are the numbers of words.
var wordNumbers = indexWords()

// No word is shorter or longer.
const minWord, maxWord = 4, 14

func indexWords() map[string]byte {
	numbers := make(map[string]byte, len(words))
	for n := 1; n < len(words); n++ {
		numbers[words[n]] = byte(n)
	}
	return numbers
}

// wordNumber returns the number of a word, 0 for other texts.
func wordNumber(s string) byte {
	if len(s) < minWord || len(s) > maxWord {
		return 0
	}
	return wordNumbers[s]
}

// wordText is the word of a number, "" = this version does not know it.
func wordText(n byte) string {
	if int(n) < len(words) {
		return words[n]
	}
	return ""
}
