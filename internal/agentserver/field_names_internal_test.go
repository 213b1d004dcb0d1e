package agentserver

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFieldsHaveTheNamesThatClientsSent(t *testing.T) {
	for field, want := range map[string]string{
		"run.graph": "assistant_id", "run.graph_version": "graph_version", "run.metadata": "metadata", "run.metadata.key": "metadata.key", "run.input": "input",
		"run.step_limit": "config.recursion_limit", "run.goto_targets[1].node": "command.goto[1].node", "run.update": "command.update",
		"run.input_at.checkpoint_id": "checkpoint", "run.interrupt_before[0]": "interrupt_before[0]",
		"resume.responses[0].interrupt_id": "command.resume", "resume.single.value": "command.resume", "single.value": "command.resume",
		"resume.settings.context": "context", "resume.settings.step_limit": "config.recursion_limit",
		"thread.metadata": "metadata", "thread.ttl": "ttl", "filter": "metadata", "at.checkpoint_id": "checkpoint", "at": "checkpoint",
		"attempt": "attempt", "input": "input", "": "",
	} {
		require.Equal(t, want, showFieldName(field), field)
	}
	shown := newError(422, "INVALID_FIELD", "run.metadata: has 70 entries").ofField("run.metadata")
	shown.showFieldNames()
	require.Equal(t, "metadata: has 70 entries", shown.Detail)
	require.Equal(t, "metadata", shown.Field)
}
