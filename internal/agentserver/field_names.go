package agentserver

import "strings"

// fieldName is the name of a field of graphd's requests, and the one that clients of this API know.
type fieldName struct{ graphd, shown string }

// listFieldNames lists the fields that are named otherwise in this API, longer ones before those that
// begin them.
func listFieldNames() []fieldName {
	return []fieldName{
		{"resume.responses", "command.resume"},
		{"resume.single", "command.resume"},
		{"resume.update", "command.update"},
		{"resume.goto_targets", "command.goto"},
		{"resume.metadata", "metadata"},
		{"resume.expected_checkpoint_id", "checkpoint"},
		{"resume.webhook", "webhook"},
		{"resume.settings.step_limit", "config.recursion_limit"},
		{"resume.settings.", ""},
		{"run.goto_targets", "command.goto"},
		{"run.update", "command.update"},
		{"run.step_limit", "config.recursion_limit"},
		{"run.graph", "assistant_id"},
		{"run.replay_from", "checkpoint"},
		{"run.input_at", "checkpoint"},
		{"run.", ""},
		{"cron.time_zone", "timezone"},
		{"cron.thread_ttl", "on_run_completed"},
		{"cron.source", "payload"},
		{"cron.", ""},
		{"assistant.graph", "graph_id"},
		{"assistant.", ""},
		{"responses", "command.resume"},
		{"single", "command.resume"},
		{"update", "command.update"},
		{"goto_targets", "command.goto"},
		{"thread.graph", "metadata.graph_id"},
		{"thread.expire_time", "ttl"},
		{"thread.", ""},
		{"source_thread_id", "thread_id"},
		{"filter", "metadata"},
		{"at", "checkpoint"},
	}
}

// showFieldName returns the name that clients know for a field. The parts of an answer stand for the
// answer: graphd counts them otherwise than the client.
func showFieldName(field string) string {
	if run, isCron := strings.CutPrefix(field, "cron.run."); isCron {
		field = "run." + run
	}
	for _, name := range listFieldNames() {
		rest, begins := strings.CutPrefix(field, name.graphd)
		isWhole := rest == "" || strings.HasSuffix(name.graphd, ".") || strings.ContainsAny(rest[:1], ".[")
		switch {
		case !begins || !isWhole:
		case name.shown == "command.resume", name.shown == "checkpoint":
			return name.shown
		default:
			return name.shown + rest
		}
	}
	return field
}

// showFieldNames renames the field of an error, at the begin of its sentence too.
func (e *apiError) showFieldNames() {
	if e.Field == "" {
		return
	}
	shown := showFieldName(e.Field)
	if rest, begins := strings.CutPrefix(e.Detail, e.Field); begins {
		e.Detail = shown + rest
	}
	e.Field = shown
}
