package chaos_test

import (
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/graphd-dev/graphd/tests/harness"
)

// ledgerEntry is a line that a worker wrote while it ran a task.
type ledgerEntry struct {
	Kind   string // "ran": the side effect; "saw": the value that memo returned; "refused": its error
	Key    string
	Value  string
	Thread string
	Task   string
	Lease  string  // "" for workers whose SDK does not tell it
	Began  float64 // when the worker got the task, in seconds of the machine's clock
	Time   float64 // when the line was written

	incarnation string // of the server that gave the lease
	fence       uint64 // of the lease; a later one of the same server is greater
}

// readLedger reads what workers wrote, all into one file.
func readLedger(path string) ([]ledgerEntry, error) {
	all, err := harness.ReadLedger[ledgerEntry](path, true)
	for i := range all {
		err = errors.Join(err, all[i].parseLease())
	}
	return all, err
}

// parseLease takes the lease apart; internal/worker says how it is made.
func (e *ledgerEntry) parseLease() error {
	if e.Lease == "" {
		return nil
	}
	token, err := hex.DecodeString(e.Lease)
	if err != nil {
		return fmt.Errorf("lease %q: %w", e.Lease, err)
	}
	length, width := binary.Uvarint(token)
	if width <= 0 || length > uint64(len(token)-width) {
		return fmt.Errorf("lease %q is not of the form this test knows", e.Lease)
	}
	parts := strings.SplitN(string(token[width:width+int(length)]), "/", 3)
	if len(parts) != 3 {
		return fmt.Errorf("lease %q is not of the form this test knows", e.Lease)
	}
	e.incarnation = parts[0]
	e.fence, err = strconv.ParseUint(parts[1], 36, 64)
	return err
}

// memoSummary is what became of all memos.
type memoSummary struct {
	records int // that were used
	ran     int // times a side effect was run
	// What became of runs whose value was not recorded: the worker was told that
	// it had lost the task, or that an earlier one had recorded a value that it
	// did not hear of any more, or was gone before it was told anything.
	refused, overruled, gone int
	replays                  int // times a record was used instead

	values map[[2]string]string // by task and key
}

// checkMemos checks that every memo has one value, and that none was run under a
// lease that was given away after its value was recorded.
func checkMemos(all []ledgerEntry) (*memoSummary, error) {
	m := &memoSummary{values: make(map[[2]string]string)}
	era := numberIncarnations(all)
	groups := make(map[[2]string][]ledgerEntry)
	for _, e := range all {
		at := [2]string{e.Task, e.Key}
		groups[at] = append(groups[at], e)
	}
	for at, group := range groups {
		if err := m.checkMemo(at, group, era); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// numberIncarnations numbers the incarnations of the server in the order of the
// ledger.
func numberIncarnations(all []ledgerEntry) map[string]int {
	era := make(map[string]int)
	for _, e := range all {
		if _, known := era[e.incarnation]; !known {
			era[e.incarnation] = len(era)
		}
	}
	return era
}

func (m *memoSummary) checkMemo(at [2]string, group []ledgerEntry, era map[string]int) error {
	wrong := func(what string) error {
		text, _ := json.MarshalIndent(group, "", " ")
		return fmt.Errorf("memo %s of task %s %s:\n%s", at[1], at[0], what, text)
	}
	after := func(a, b ledgerEntry) bool {
		return era[a.incarnation] > era[b.incarnation] || a.incarnation == b.incarnation && a.fence > b.fence
	}
	ran := make(map[string]string) // by lease: what its run came to
	refused, told := make(map[string]bool), make(map[string]bool)
	var recorded *ledgerEntry // who was the first to use the value
	saw := 0
	for _, e := range group {
		if e.Lease == "" {
			e.Lease = e.Value // of a run of its own
		}
		switch e.Kind {
		case "ran":
			if _, twice := ran[e.Lease]; twice {
				return wrong("ran twice under one lease")
			}
			ran[e.Lease] = e.Value
		case "refused":
			refused[e.Lease] = true
		case "saw":
			saw++
			told[e.Lease] = true
			if recorded == nil {
				recorded = &e
			}
			if e.Value != recorded.Value {
				return wrong("has two values")
			}
		}
	}
	m.ran += len(ran)
	for lease, value := range ran {
		switch {
		case recorded != nil && value == recorded.Value:
		case refused[lease]:
			m.refused++
		case told[lease]:
			m.overruled++
		default:
			m.gone++
		}
	}
	if recorded == nil {
		return nil
	}
	origin := false
	for _, e := range group {
		if e.Kind != "ran" {
			continue
		}
		origin = origin || e.Value == recorded.Value
		// Both must be so: a lease that is later by its number may have been
		// given before, if the earlier one was taken up again by a new server;
		// a task that came later may have been on its way to a paused worker.
		if e.incarnation != "" && recorded.incarnation != "" && after(e, *recorded) && e.Began > recorded.Time {
			return wrong("ran again though it was recorded")
		}
	}
	if !origin {
		return wrong("has a value that no run of it made")
	}
	m.records++
	m.replays += saw - 1
	m.values[at] = recorded.Value
	return nil
}
