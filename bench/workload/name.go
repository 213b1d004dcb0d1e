package workload

import (
	"context"
	"fmt"
)

// ByName makes an operation of W1, W2 or W3.
func ByName(name string, t Target, names *Names) (One, error) {
	switch name {
	case "W1":
		return W1(t), nil
	case "W2":
		return W2(t, names), nil
	case "W3":
		return W3(t), nil
	default:
		return nil, fmt.Errorf("workload: no %s", name)
	}
}

// Overheard returns a target whose answers are noted by call. One client at a
// time may use it.
func (t Target) Overheard(heard map[string][][]byte) Target {
	t.hear = func(call string, message []byte) {
		heard[call] = append(heard[call], append([]byte(nil), message...))
	}
	return t
}

// stream is Stream for a call of a workload.
func (t Target) stream(ctx context.Context, lane int, call string, request []byte, see func([]byte) error) error {
	if t.hear != nil {
		inner := see
		see = func(message []byte) error {
			t.hear(call, message)
			return inner(message)
		}
	}
	return t.Stream(ctx, lane, t.Method(call), request, see)
}
