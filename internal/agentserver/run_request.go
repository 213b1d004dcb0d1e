package agentserver

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
)

// runRequest asks for a run: the body of runs, runs/stream and runs/wait.
type runRequest struct {
	Assistant       string            `json:"assistant_id"`
	Input           json.RawMessage   `json:"input"`
	Command         *runCommand       `json:"command"`
	Config          *runConfig        `json:"config"`
	Context         json.RawMessage   `json:"context"`
	Metadata        metadata          `json:"metadata"`
	Checkpoint      *checkpointChoice `json:"checkpoint"`
	CheckpointID    string            `json:"checkpoint_id"`
	StreamMode      textOrList        `json:"stream_mode"`
	StreamSubgraphs bool              `json:"stream_subgraphs"`
	StreamResumable bool              `json:"stream_resumable"`
	InterruptBefore textOrList        `json:"interrupt_before"`
	InterruptAfter  textOrList        `json:"interrupt_after"`
	Multitask       string            `json:"multitask_strategy"`
	IfNotExists     string            `json:"if_not_exists"`
	OnDisconnect    string            `json:"on_disconnect"`
	OnCompletion    string            `json:"on_completion"`
	AfterSeconds    *float64          `json:"after_seconds"`
	Webhook         string            `json:"webhook"`
	Durability      string            `json:"durability"`
	StrictResume    bool              `json:"strict_resume"` // every answer is checked so
	FeedbackKeys    textOrList        `json:"feedback_keys"`
}

// runCommand goes on with a thread, or steers it.
type runCommand struct {
	Resume json.RawMessage `json:"resume"`
	Update json.RawMessage `json:"update"`
	Goto   gotoList        `json:"goto"`
}

// runConfig configures a run.
type runConfig struct {
	Tags           []string                   `json:"tags"`
	StepLimit      *uint32                    `json:"recursion_limit"`
	Configurable   map[string]json.RawMessage `json:"configurable"`
	Metadata       metadata                   `json:"metadata"`
	MaxConcurrency *int                       `json:"max_concurrency"`
}

// gotoList lists where a command goes: nodes, and nodes with inputs of their own.
type gotoList []*graphdv1.Goto

// UnmarshalJSON reads a place or a list of places.
func (l *gotoList) UnmarshalJSON(text []byte) error {
	if text[0] == 'n' {
		return nil
	}
	given := []json.RawMessage{text}
	if text[0] == '[' {
		given = nil
		if err := json.Unmarshal(text, &given); err != nil {
			return err
		}
	}
	for _, one := range given {
		place, err := readGoto(one)
		if err != nil {
			return err
		}
		*l = append(*l, place)
	}
	return nil
}

func readGoto(text json.RawMessage) (*graphdv1.Goto, error) {
	var node string
	if json.Unmarshal(text, &node) == nil {
		return &graphdv1.Goto{Target: &graphdv1.Goto_Node{Node: node}}, nil
	}
	var send struct {
		Node  string          `json:"node"`
		Input json.RawMessage `json:"input"`
	}
	if err := json.Unmarshal(text, &send); err != nil || send.Node == "" {
		return nil, invalidField("command.goto", "has the target %.100s: want the name of a node, or {node, input}", text)
	}
	return &graphdv1.Goto{Target: &graphdv1.Goto_Send{Send: &graphdv1.Send{Node: send.Node, Input: newPayload(send.Input)}}}, nil
}

// endsThread reports whether a command does nothing but end what a thread has left to do.
func (c *runCommand) endsThread() bool {
	return c != nil && isAbsent(c.Resume) && isAbsent(c.Update) && len(c.Goto) == 1 && c.Goto[0].GetNode() == endNode
}

// isResume reports whether a command answers questions. The answer null counts if the command has
// nothing else.
func (c *runCommand) isResume() bool {
	return c != nil && (!isAbsent(c.Resume) || len(c.Resume) > 0 && isAbsent(c.Update) && len(c.Goto) == 0)
}

// streamModes lists the modes of streams.
func streamModes() []string {
	return []string{"values", "updates", "messages", "messages-tuple", "custom", "tasks", "checkpoints", "debug", "events"}
}

// readRunRequest reads the body of the request, and refuses what is not served.
func (c *call) readRunRequest() (*runRequest, error) {
	r := &runRequest{}
	if err := c.decodeBody(r); err != nil {
		return nil, err
	}
	if len(r.StreamMode) == 0 {
		r.StreamMode = textOrList{"values"}
	}
	if err := r.validate(); err != nil {
		return nil, err
	}
	r.StreamMode = removeRepeats(r.StreamMode)
	return r, nil
}

// removeRepeats returns each of some words once, in their order.
func removeRepeats(words []string) (once []string) {
	for _, word := range words {
		if !slices.Contains(once, word) {
			once = append(once, word)
		}
	}
	return once
}

func (r *runRequest) validate() error {
	if r.Assistant == "" {
		return invalidField("assistant_id", "is missing: want the id of an assistant, or the name of a graph")
	}
	for _, mode := range r.StreamMode {
		if !slices.Contains(streamModes(), mode) {
			return invalidField("stream_mode", "is %.100q: want %s", mode, strings.Join(streamModes(), ", "))
		}
	}
	for _, word := range []struct {
		field, given string
		wanted       []string
	}{
		{"multitask_strategy", r.Multitask, []string{"reject", "enqueue", "interrupt", "rollback"}},
		{"if_not_exists", r.IfNotExists, []string{"reject", "create"}},
		{"on_disconnect", r.OnDisconnect, []string{"continue", "cancel"}},
		{"on_completion", r.OnCompletion, []string{"delete", "keep"}},
		{"durability", r.Durability, []string{"sync", "async", "exit"}},
	} {
		if word.given != "" && !slices.Contains(word.wanted, word.given) {
			return invalidField(word.field, "is %.100q: want %s", word.given, strings.Join(word.wanted, " or "))
		}
	}
	return r.refuseUnserved()
}

// refuseUnserved refuses fields that graphd knows and does not serve, instead of ignoring them.
func (r *runRequest) refuseUnserved() error {
	switch {
	case r.AfterSeconds != nil && !(*r.AfterSeconds >= 0 && *r.AfterSeconds <= longestDelay.Seconds()):
		return invalidField("after_seconds", "is %g: want 0 to %.0f", *r.AfterSeconds, longestDelay.Seconds())
	case r.delay() != nil && (r.Command.isResume() || r.Command.endsThread()):
		return invalidField("after_seconds", "is for a run that is started, and this command starts none: send it when it is to count")
	case r.delay() != nil && (r.Multitask == "interrupt" || r.Multitask == "rollback"):
		return invalidField("multitask_strategy", "is %q: a run that begins later waits for its turn; want enqueue", r.Multitask)
	case len(r.FeedbackKeys) > 0:
		return invalidField("feedback_keys", "is not served: there is no LangSmith to send feedback to")
	case r.Command != nil && !isAbsent(r.Command.Update) && !isObject(r.Command.Update):
		return invalidField("command.update", "is no object: want one whose keys are those of the state")
	}
	return nil
}

// longestDelay is how long after its acceptance a run begins at most.
const longestDelay = 366 * 24 * time.Hour

// delay returns how long after its acceptance the run begins, nil = at once.
func (r *runRequest) delay() *durationpb.Duration {
	if r.AfterSeconds == nil || *r.AfterSeconds == 0 {
		return nil
	}
	return durationpb.New(time.Duration(*r.AfterSeconds * float64(time.Second)))
}

// internalKeys lists the keys of config.configurable that are not for nodes.
func internalKeys() []string {
	return []string{"thread_id", "checkpoint_id", "checkpoint_ns", "checkpoint_map"}
}

// runContext returns what nodes read as context: that of the request, or the configurable of its
// config.
func (r *runRequest) runContext() *graphdv1.Payload {
	if !isAbsent(r.Context) {
		return newPayload(r.Context)
	}
	if r.Config == nil {
		return nil
	}
	given := withoutInternalKeys(r.Config.Configurable)
	if len(given) == 0 {
		return nil
	}
	text, err := encodeJSON(given)
	if err != nil { // it was read as JSON
		return nil
	}
	return newPayload(text)
}

// withoutInternalKeys returns what nodes may read of config.configurable.
func withoutInternalKeys(configurable map[string]json.RawMessage) map[string]json.RawMessage {
	given := maps.Clone(configurable)
	maps.DeleteFunc(given, func(key string, _ json.RawMessage) bool {
		return slices.Contains(internalKeys(), key) || strings.HasPrefix(key, "__") || strings.HasPrefix(key, "langgraph_")
	})
	return given
}

// stepLimit returns how many supersteps the run may take, 0 = as many as the graph says.
func (r *runRequest) stepLimit() uint32 {
	if r.Config == nil || r.Config.StepLimit == nil {
		return 0
	}
	return *r.Config.StepLimit
}

// checkpointRef returns the checkpoint that the run begins at, nil = the newest one.
func (r *runRequest) checkpointRef() *graphdv1.CheckpointRef {
	chosen := r.Checkpoint
	if chosen == nil || chosen.ID == "" {
		chosen = &checkpointChoice{ID: r.CheckpointID}
	}
	if chosen.ID == "" && r.Config != nil {
		chosen.ID = metadata(r.Config.Configurable).readText("checkpoint_id")
	}
	if chosen.ID == "" {
		return nil
	}
	return chosen.toRef()
}

// allMetadata returns the metadata of the run: that of the config and that of the request.
func (r *runRequest) allMetadata() metadata {
	all := metadata{}
	if r.Config != nil {
		maps.Copy(all, r.Config.Metadata)
	}
	maps.Copy(all, r.Metadata)
	return all
}

// concurrency returns what becomes of a run that is active.
func (r *runRequest) concurrency() graphdv1.ConcurrencyPolicy {
	switch r.Multitask {
	case "reject":
		return graphdv1.ConcurrencyPolicy_CONCURRENCY_POLICY_REJECT
	case "interrupt":
		return graphdv1.ConcurrencyPolicy_CONCURRENCY_POLICY_CANCEL_ACTIVE
	case "rollback":
		return graphdv1.ConcurrencyPolicy_CONCURRENCY_POLICY_ROLLBACK_ACTIVE
	}
	return graphdv1.ConcurrencyPolicy_CONCURRENCY_POLICY_ENQUEUE
}

// disconnect returns what becomes of the run when the client goes away.
func (r *runRequest) disconnect() graphdv1.DisconnectPolicy {
	if r.OnDisconnect == "cancel" {
		return graphdv1.DisconnectPolicy_DISCONNECT_POLICY_CANCEL
	}
	return graphdv1.DisconnectPolicy_DISCONNECT_POLICY_CONTINUE
}
