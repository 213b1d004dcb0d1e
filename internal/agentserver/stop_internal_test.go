package agentserver

import (
	"encoding/json"
	"testing"
)

func TestStatesOfSubgraphsAreForgottenWithTheirSuperstep(t *testing.T) {
	states := newSubgraphStates()
	outer, other := []string{"outer:1"}, []string{"outer2"}
	inner := []string{"outer:1", "inner:2"}
	for _, namespace := range [][]string{outer, inner, other, outer} {
		states.keepState(namespace, subgraphState{values: json.RawMessage(`{}`)})
	}
	states.forgetBelow(outer)
	if states.findValues(outer) == nil || states.findValues(other) == nil || states.findValues(inner) != nil {
		t.Errorf("kept %v, want the outer graphs", states.byName)
	}
	states.forgetBelow(nil)
	if len(states.byName) != 0 || states.size != 0 {
		t.Errorf("kept %v of %d bytes, want nothing", states.byName, states.size)
	}
}
