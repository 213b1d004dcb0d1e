package agentserver

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strings"

	"github.com/google/uuid"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
)

// chosenAssistant is the assistant that a request names: the default one of a graph, or one that is
// kept.
type chosenAssistant struct {
	graph string
	kept  *graphdv1.Assistant // nil = the default one
}

// id returns the id of an assistant that is kept, "" of a default one.
func (a *chosenAssistant) id() string { return a.kept.GetAssistantId() }

// findAssistant finds the assistant with an id, or the default one of a graph by the name of that. A
// name is not looked up.
func (c *call) findAssistant(named string) (*chosenAssistant, error) {
	if !isID(named) {
		return &chosenAssistant{graph: named}, nil
	}
	id := strings.ToLower(named)
	lookups := []func(id string) (*chosenAssistant, error){c.findKeptAssistant, c.findDefaultAssistant}
	if isNameBased(id) {
		lookups[0], lookups[1] = lookups[1], lookups[0]
	}
	for _, lookUp := range lookups {
		if found, err := lookUp(id); err != nil || found != nil {
			return found, err
		}
	}
	return nil, newAssistantNotFound(id)
}

// isNameBased reports whether an id is of the kind of default assistants.
func isNameBased(id string) bool {
	parsed, err := uuid.Parse(id)
	return err == nil && parsed.Version() == 5
}

func newAssistantNotFound(id string) *apiError {
	return newError(http.StatusNotFound, "ASSISTANT_NOT_FOUND", fmt.Sprintf("there is no assistant %s: POST /assistants/search lists them", id))
}

// findKeptAssistant returns nil when no assistant with the id is kept.
func (c *call) findKeptAssistant(id string) (*chosenAssistant, error) {
	kept, err := c.assistants.GetAssistant(c.ctx, &graphdv1.GetAssistantRequest{AssistantId: id})
	if reasonOf(err) == "ASSISTANT_NOT_FOUND" {
		return nil, nil //nolint:nilnil // there is none
	}
	if err != nil {
		return nil, err
	}
	return &chosenAssistant{graph: kept.GetGraph(), kept: kept}, nil
}

// findDefaultAssistant returns nil when it is the id of no graph.
func (c *call) findDefaultAssistant(id string) (found *chosenAssistant, err error) {
	err = c.visitGraphs(func(g *graphdv1.Graph) bool {
		if defaultAssistant(g.GetGraph()) == id {
			found = &chosenAssistant{graph: g.GetGraph()}
		}
		return found == nil
	})
	return found, err
}

// findGraph returns the name of the graph of an assistant.
func (c *call) findGraph(assistant string) (string, error) {
	found, err := c.findAssistant(assistant)
	if err != nil {
		return "", err
	}
	return found.graph, nil
}

// applyAssistant completes the request by what its assistant is configured with. What the request
// says counts more, key by key.
func (r *runRequest) applyAssistant(a *chosenAssistant) error {
	if a.kept == nil {
		return nil
	}
	var own runConfig
	if text := a.kept.GetConfig().GetJson(); text != "" {
		if err := json.Unmarshal([]byte(text), &own); err != nil {
			return invalidField("assistant_id", "is of an assistant whose config can't be used: %s", err)
		}
	}
	context := map[string]json.RawMessage{}
	if text := a.kept.GetContext().GetJson(); text != "" {
		if err := json.Unmarshal([]byte(text), &context); err != nil {
			return invalidField("assistant_id", "is of an assistant whose context can't be used: %s", err)
		}
	}
	if err := r.completeContext(context, own.Configurable); err != nil {
		return err
	}
	if own.StepLimit == nil || r.Config != nil && r.Config.StepLimit != nil {
		return nil
	}
	if r.Config == nil {
		r.Config = &runConfig{}
	}
	r.Config.StepLimit = own.StepLimit
	return nil
}

// completeContext adds the context of the assistant to that of the request. What is configurable
// counts as context where neither has one, as it does for a request alone.
func (r *runRequest) completeContext(context, configurable map[string]json.RawMessage) error {
	all := map[string]json.RawMessage{}
	maps.Copy(all, withoutInternalKeys(configurable))
	maps.Copy(all, context)
	if len(all) == 0 {
		return nil
	}
	given, err := r.givenContext()
	if err != nil {
		return err
	}
	maps.Copy(all, given)
	r.Context, err = encodeJSON(all)
	return err
}

// givenContext returns what the request says itself: its context, or what is configurable.
func (r *runRequest) givenContext() (map[string]json.RawMessage, error) {
	if isAbsent(r.Context) {
		if r.Config == nil {
			return nil, nil
		}
		return withoutInternalKeys(r.Config.Configurable), nil
	}
	var given map[string]json.RawMessage
	if err := json.Unmarshal(r.Context, &given); err != nil {
		return nil, invalidField("context", "is no object, and the assistant has a context: want keys that replace those of the assistant")
	}
	return given, nil
}
