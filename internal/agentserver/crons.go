package agentserver

import (
	"cmp"
	"encoding/json"
	"maps"
	"net/http"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/fieldmaskpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
)

// A cron of this API is one of graphd. Its source is the run request that it was made of, which a
// change completes, and of which the run is made anew.

// cron is a cron as clients have it.
type cron struct {
	ID             string          `json:"cron_id"`
	Assistant      string          `json:"assistant_id"`
	Thread         *string         `json:"thread_id"`
	OnRunCompleted *string         `json:"on_run_completed"`
	End            *string         `json:"end_time"`
	Schedule       string          `json:"schedule"`
	TimeZone       *string         `json:"timezone"`
	Created        string          `json:"created_at"`
	Updated        string          `json:"updated_at"`
	Payload        json.RawMessage `json:"payload"`
	User           *string         `json:"user_id"`
	Next           *string         `json:"next_run_date"`
	Metadata       metadata        `json:"metadata"`
	Enabled        bool            `json:"enabled"`
}

// newCron returns a cron as clients have it.
func newCron(kept *graphdv1.Cron) cron {
	shown := cron{
		ID: kept.GetCronId(), Assistant: cronAssistant(kept), Thread: textOrNull(kept.GetRun().GetThreadId()), End: timeOrNull(kept.GetEndTime()),
		Schedule: kept.GetSchedule(), TimeZone: textOrNull(kept.GetTimeZone()), Created: formatTime(kept.GetCreateTime()), Updated: formatTime(kept.GetUpdateTime()),
		User: textOrNull(kept.GetCreatedBy()), Next: timeOrNull(kept.GetNextTime()), Metadata: readLabels(kept.GetMetadata()), Enabled: !kept.GetPaused(),
	}
	if kept.GetRun().GetThreadId() == "" {
		shown.OnRunCompleted = new("keep")
		if kept.GetThreadTtl() != nil {
			shown.OnRunCompleted = new("delete")
		}
	}
	shown.Payload = showPayload(kept)
	return shown
}

// showPayload returns the run request of a cron, as far as it is known.
func showPayload(kept *graphdv1.Cron) json.RawMessage {
	request := map[string]json.RawMessage{}
	if text := kept.GetSource().GetJson(); text == "" || json.Unmarshal([]byte(text), &request) != nil {
		request["assistant_id"] = quoteText(cronAssistant(kept))
		if input := kept.GetRun().GetInput().GetJson(); input != "" {
			request["input"] = json.RawMessage(input)
		}
	}
	request["schedule"] = quoteText(kept.GetSchedule())
	text, err := encodeJSON(request)
	if err != nil { // it was read as JSON
		return json.RawMessage("{}")
	}
	return text
}

// cronAssistant returns the id of the assistant of a cron.
func cronAssistant(kept *graphdv1.Cron) string {
	return cmp.Or(kept.GetMetadata()[assistantLabel], defaultAssistant(kept.GetRun().GetGraph()))
}

func textOrNull(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

func timeOrNull(at *timestamppb.Timestamp) *string {
	if at == nil {
		return nil
	}
	return new(formatTime(at))
}

// cronWriting makes or changes a cron, beside its run request.
type cronWriting struct {
	Schedule       *string         `json:"schedule"`
	TimeZone       *string         `json:"timezone"`
	End            json.RawMessage `json:"end_time"`
	Enabled        *bool           `json:"enabled"`
	OnRunCompleted *string         `json:"on_run_completed"`

	request map[string]json.RawMessage // the fields of the run request
	end     *timestamppb.Timestamp
}

// runFields lists the fields of a run request that a cron may have.
func runFields() []string {
	return []string{
		"assistant_id", "input", "config", "context", "metadata", "interrupt_before", "interrupt_after", "webhook", "multitask_strategy", "stream_mode",
		"stream_subgraphs", "stream_resumable", "durability", "checkpoint_during",
	}
}

// unservedCronFields lists the fields of a run request that a cron must not have: they are known, and
// would have no effect.
func unservedCronFields() []string {
	return []string{"command", "checkpoint", "checkpoint_id", "after_seconds", "feedback_keys", "on_disconnect", "if_not_exists"}
}

// readCronWriting reads the body of the request.
func (c *call) readCronWriting() (*cronWriting, error) {
	w := &cronWriting{request: map[string]json.RawMessage{}}
	if err := c.decodeBody(w); err != nil {
		return nil, err
	}
	var all map[string]json.RawMessage
	if err := c.decodeBody(&all); err != nil {
		return nil, err
	}
	for _, field := range unservedCronFields() {
		if !isAbsent(all[field]) {
			return nil, invalidField(field, "is not for crons: each firing starts a run with an input at its time")
		}
	}
	for _, field := range runFields() {
		if !isAbsent(all[field]) {
			w.request[field] = all[field]
		}
	}
	if w.OnRunCompleted != nil && *w.OnRunCompleted != "delete" && *w.OnRunCompleted != "keep" {
		return nil, invalidField("on_run_completed", "is %.100q: want delete or keep", *w.OnRunCompleted)
	}
	err := w.readEnd()
	return w, err
}

// readEnd reads the end of the cron: a time as of ISO 8601, of UTC unless it says another zone.
func (w *cronWriting) readEnd() error {
	if isAbsent(w.End) {
		return nil
	}
	var text string
	if err := json.Unmarshal(w.End, &text); err != nil {
		return invalidField("end_time", "is no text: want a time, as 2030-01-31T09:00:00+00:00")
	}
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999"} {
		if at, err := time.Parse(layout, text); err == nil {
			w.end = timestamppb.New(at)
			return nil
		}
	}
	return invalidField("end_time", "is %.100q: want a time, as 2030-01-31T09:00:00+00:00", text)
}

// putRun makes the run of a cron of its run request, which it keeps as the source.
func (w *cronWriting) putRun(c *call, to *graphdv1.Cron, thread string) error {
	source, err := encodeJSON(w.request)
	if err != nil {
		return err
	}
	c.body = source
	r, err := c.readRunRequest()
	if err != nil {
		return err
	}
	p, err := c.newPlan(r, thread)
	if err != nil {
		return err
	}
	if err := p.planStart(p.assistant.graph); err != nil {
		return err
	}
	if err := p.forgetRun(); err != nil {
		return err
	}
	if thread == "" { // a new thread has no questions
		p.start.OpenInterrupts = graphdv1.OpenInterruptPolicy_OPEN_INTERRUPT_POLICY_UNSPECIFIED
	}
	labels, err := r.Metadata.toLabels()
	if err != nil {
		return err
	}
	labels[assistantLabel] = cmp.Or(p.assistant.id(), defaultAssistant(p.assistant.graph))
	to.Run, to.Source, to.Metadata = p.start, newPayload(source), labels
	return nil
}

// forgetRun takes the id of the run out of a plan: each firing has its own.
func (p *plan) forgetRun() error {
	p.leg.ID, p.leg.Begun, p.start.RunId = "", time.Time{}, ""
	key, text, err := p.leg.toLabel()
	p.start.Metadata[key] = text
	return err
}

// chooseThreadTTL returns how long the threads of firings are kept, nil = for good.
func chooseThreadTTL(onRunCompleted string, run *graphdv1.RunSpec) *durationpb.Duration {
	switch {
	case onRunCompleted == "keep":
		return nil
	case run.GetWebhook() != "": // the thread has to be there when the webhook is called
		return durationpb.New(webhookTTL)
	}
	return durationpb.New(temporaryTTL)
}

// createCron answers POST /runs/crons and POST /threads/{id}/runs/crons.
func createCron(c *call) error {
	thread := c.r.PathValue("thread")
	if thread != "" {
		var err error
		if thread, err = c.pathID("thread"); err != nil {
			return err
		}
	}
	w, err := c.readCronWriting()
	if err != nil {
		return err
	}
	if w.Schedule == nil {
		return invalidField("schedule", `is missing: want the five fields "MINUTE HOUR DAY MONTH WEEKDAY", as "0 9 * * 1-5"`)
	}
	made := &graphdv1.Cron{Schedule: *w.Schedule, TimeZone: derefText(w.TimeZone), EndTime: w.end, Paused: w.Enabled != nil && !*w.Enabled}
	if err := w.putRun(c, made, thread); err != nil {
		return err
	}
	if thread == "" {
		made.ThreadTtl = chooseThreadTTL(derefText(w.OnRunCompleted), made.GetRun())
	}
	kept, err := withoutDroppingQuestions(made.GetRun(), func() (*graphdv1.Cron, error) {
		return c.crons.CreateCron(c.ctx, &graphdv1.CreateCronRequest{Cron: made})
	})
	if err != nil {
		return refuseAssistant(err)
	}
	return c.writeJSON(http.StatusOK, newCron(kept))
}

func derefText(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}

// withoutDroppingQuestions makes a call again, with a run that drops no questions, where the caller
// must not drop them.
func withoutDroppingQuestions(run *graphdv1.RunSpec, do func() (*graphdv1.Cron, error)) (*graphdv1.Cron, error) {
	kept, err := do()
	if run != nil && ruleOf(err) == "right: discard-questions" {
		run.OpenInterrupts = graphdv1.OpenInterruptPolicy_OPEN_INTERRUPT_POLICY_UNSPECIFIED
		kept, err = do()
	}
	return kept, err
}

// updateCron answers PATCH /runs/crons/{id}. Fields of the run request replace those that the cron
// has, and metadata is added to what there is.
func updateCron(c *call) error {
	w, err := c.readCronWriting()
	if err != nil {
		return err
	}
	for {
		kept, err := c.crons.GetCron(c.ctx, &graphdv1.GetCronRequest{CronId: c.r.PathValue("cron")})
		if err != nil {
			return err
		}
		changed, err := w.changeCron(c, kept)
		switch {
		case reasonOf(err) == "ETAG_MISMATCH": // it has fired, or another call has changed it meanwhile
		case err != nil:
			return refuseAssistant(err)
		default:
			return c.writeJSON(http.StatusOK, newCron(changed))
		}
	}
}

// changeCron changes a cron. Errors: ETAG_MISMATCH when the cron was changed since it was read.
func (w *cronWriting) changeCron(c *call, kept *graphdv1.Cron) (*graphdv1.Cron, error) {
	wanted := &graphdv1.Cron{CronId: kept.GetCronId(), Etag: kept.GetEtag()}
	var paths []string
	if w.Schedule != nil {
		wanted.Schedule, paths = *w.Schedule, append(paths, "schedule")
	}
	if w.TimeZone != nil {
		wanted.TimeZone, paths = *w.TimeZone, append(paths, "time_zone")
	}
	if len(w.End) > 0 { // null takes the end away
		wanted.EndTime, paths = w.end, append(paths, "end_time")
	}
	if w.Enabled != nil {
		wanted.Paused, paths = !*w.Enabled, append(paths, "paused")
	}
	if len(w.request) > 0 {
		merged, err := w.mergeRequest(kept)
		if err != nil {
			return nil, err
		}
		if err := merged.putRun(c, wanted, kept.GetRun().GetThreadId()); err != nil {
			return nil, err
		}
		paths = append(paths, "run", "source", "metadata")
	}
	if isStateless := kept.GetRun().GetThreadId() == ""; isStateless && (w.OnRunCompleted != nil || kept.GetThreadTtl() != nil && wanted.GetRun() != nil) {
		run := cmp.Or(wanted.GetRun(), kept.GetRun())
		wanted.ThreadTtl, paths = chooseThreadTTL(derefText(w.OnRunCompleted), run), append(paths, "thread_ttl")
	}
	if len(paths) == 0 {
		return nil, invalidField("body", "changes nothing: want schedule, timezone, end_time, enabled, on_run_completed or a field of the run")
	}
	return withoutDroppingQuestions(wanted.GetRun(), func() (*graphdv1.Cron, error) {
		return c.crons.UpdateCron(c.ctx, &graphdv1.UpdateCronRequest{Cron: wanted, UpdateMask: &fieldmaskpb.FieldMask{Paths: paths}})
	})
}

// mergeRequest completes the run request of a cron by the fields of this one.
func (w *cronWriting) mergeRequest(kept *graphdv1.Cron) (*cronWriting, error) {
	merged := &cronWriting{request: map[string]json.RawMessage{}}
	text := kept.GetSource().GetJson()
	if text == "" || json.Unmarshal([]byte(text), &merged.request) != nil {
		return nil, newError(http.StatusConflict, "CRON_NOT_CHANGEABLE", "the cron was not made by this API: change what it starts over gRPC, or make another one")
	}
	metadataBefore := merged.request["metadata"]
	maps.Copy(merged.request, w.request)
	all := metadata{}
	for _, part := range []json.RawMessage{metadataBefore, w.request["metadata"]} {
		if err := json.Unmarshal(part, &all); err != nil && !isAbsent(part) {
			return nil, invalidField("metadata", "is no object")
		}
	}
	if len(all) == 0 {
		return merged, nil
	}
	encoded, err := encodeJSON(all)
	merged.request["metadata"] = encoded
	return merged, err
}

// getCron answers GET /runs/crons/{id}.
func getCron(c *call) error {
	kept, err := c.crons.GetCron(c.ctx, &graphdv1.GetCronRequest{CronId: c.r.PathValue("cron")})
	if err != nil {
		return err
	}
	return c.writeJSON(http.StatusOK, newCron(kept))
}

// deleteCron answers DELETE /runs/crons/{id}.
func deleteCron(c *call) error {
	if _, err := c.crons.DeleteCron(c.ctx, &graphdv1.DeleteCronRequest{CronId: c.r.PathValue("cron")}); err != nil {
		return err
	}
	return c.writeNothing()
}
