package agentserver

import (
	"encoding/json"
	"net/http"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
)

// assistant is an assistant as clients have it.
type assistant struct {
	ID          string          `json:"assistant_id"`
	Graph       string          `json:"graph_id"`
	Name        string          `json:"name"`
	Description *string         `json:"description"`
	Config      json.RawMessage `json:"config"`
	Context     json.RawMessage `json:"context"`
	Metadata    metadata        `json:"metadata"`
	Version     int             `json:"version"`
	Created     string          `json:"created_at"`
	Updated     string          `json:"updated_at"`
}

// newAssistant returns an assistant that is kept.
func newAssistant(kept *graphdv1.Assistant) assistant {
	a := assistant{
		ID: kept.GetAssistantId(), Graph: kept.GetGraph(), Name: kept.GetName(), Config: objectText(kept.GetConfig()), Context: objectText(kept.GetContext()),
		Metadata: readLabels(kept.GetMetadata()), Version: int(kept.GetVersion()), Created: formatTime(kept.GetCreateTime()), Updated: formatTime(kept.GetUpdateTime()),
	}
	if text := kept.GetDescription(); text != "" {
		a.Description = &text
	}
	a.mirrorContext()
	return a
}

// mirrorContext shows the context as what is configurable as well, and that as the context where there
// is none: clients of either age find it.
func (a *assistant) mirrorContext() {
	var config map[string]json.RawMessage
	if json.Unmarshal(a.Config, &config) != nil {
		return // it is shown as it is
	}
	configurable, hasConfigurable := config["configurable"]
	switch hasContext := string(a.Context) != "{}"; {
	case hasContext && !hasConfigurable:
		config["configurable"] = a.Context
		if text, err := encodeJSON(config); err == nil {
			a.Config = text
		}
	case !hasContext && isObject(configurable):
		a.Context = configurable
	}
}

// objectText returns the JSON of a payload, an empty object for none.
func objectText(p *graphdv1.Payload) json.RawMessage {
	if text := p.GetJson(); text != "" {
		return json.RawMessage(text)
	}
	return json.RawMessage("{}")
}

// newDefaultAssistant returns the default assistant of a graph.
func newDefaultAssistant(g *graphdv1.Graph) assistant {
	a := assistant{
		ID: defaultAssistant(g.GetGraph()), Graph: g.GetGraph(), Name: g.GetGraph(), Config: objectText(nil), Context: objectText(nil),
		Metadata: readLabels(g.GetMetadata()), Version: 1, Created: formatTime(g.GetCreateTime()), Updated: formatTime(g.GetCreateTime()),
	}
	if text := g.GetDescription(); text != "" {
		a.Description = &text
	}
	a.Metadata.setText("created_by", "system")
	return a
}

// formatTime returns a time as clients have it.
func formatTime(t *timestamppb.Timestamp) string { return t.AsTime().UTC().Format(time.RFC3339Nano) }

// graphsPage is how many graphs are read with one call.
const graphsPage = 500

// visitGraphs calls visit for each graph, until it returns false.
func (c *call) visitGraphs(visit func(*graphdv1.Graph) bool) error {
	for token := ""; ; {
		page, err := c.registry.ListGraphs(c.ctx, &graphdv1.ListGraphsRequest{PageSize: graphsPage, PageToken: token})
		if err != nil {
			return err
		}
		for _, g := range page.GetGraphs() {
			if !visit(g) {
				return nil
			}
		}
		if token = page.GetNextPageToken(); token == "" {
			return nil
		}
	}
}

// readGraph returns the graph of the assistant in the path.
func (c *call) readGraph(view graphdv1.GraphView) (*graphdv1.Graph, error) {
	name, err := c.findGraph(c.r.PathValue("assistant"))
	if err != nil {
		return nil, err
	}
	return c.registry.GetGraph(c.ctx, &graphdv1.GetGraphRequest{Graph: name, View: view})
}

// readDefaultAssistant returns the default assistant of a graph.
func (c *call) readDefaultAssistant(graph string) (assistant, error) {
	g, err := c.registry.GetGraph(c.ctx, &graphdv1.GetGraphRequest{Graph: graph, View: graphdv1.GraphView_GRAPH_VIEW_BASIC})
	if err != nil {
		return assistant{}, err
	}
	return newDefaultAssistant(g), nil
}

// getAssistant answers GET /assistants/{id}.
func getAssistant(c *call) error {
	found, err := c.findAssistant(c.r.PathValue("assistant"))
	if err != nil {
		return err
	}
	if found.kept != nil {
		return c.writeJSON(http.StatusOK, newAssistant(found.kept))
	}
	shown, err := c.readDefaultAssistant(found.graph)
	if err != nil {
		return err
	}
	return c.writeJSON(http.StatusOK, shown)
}

// Bounds of pages of this API.
const (
	standardPage = 10
	largestPage  = 1000
)

// pageSize returns the number of items of a page.
func pageSize(given *int) (int, error) {
	switch {
	case given == nil:
		return standardPage, nil
	case *given < 1 || *given > largestPage:
		return 0, invalidField("limit", "is %d: want a number from 1 to %d", *given, largestPage)
	}
	return *given, nil
}

// schemas are the JSON Schemas of a graph.
type schemas struct {
	Graph   string          `json:"graph_id"`
	Input   json.RawMessage `json:"input_schema"`
	Output  json.RawMessage `json:"output_schema"`
	State   json.RawMessage `json:"state_schema"`
	Config  json.RawMessage `json:"config_schema"`
	Context json.RawMessage `json:"context_schema"`
}

func newSchemas(g *graphdv1.GraphSpec) schemas {
	all := make([]string, 0, len(g.GetChannels()))
	for _, channel := range g.GetChannels() {
		all = append(all, channel.GetName())
	}
	s := schemas{
		Graph: g.GetName(), State: describeKeys(g.GetName()+"_state", all), Input: schemaText(g.GetInputSchema()), Output: schemaText(g.GetOutputSchema()),
		Context: schemaText(g.GetContextSchema()), Config: json.RawMessage(`{"type":"object","properties":{}}`),
	}
	if s.Input == nil {
		s.Input = describeKeys(g.GetName()+"_input", chooseKeys(g.GetInput(), all))
	}
	if s.Output == nil {
		s.Output = describeKeys(g.GetName()+"_output", chooseKeys(g.GetOutput(), all))
	}
	return s
}

// schemaText returns a schema, nil for none.
func schemaText(p *graphdv1.Payload) json.RawMessage {
	if text := p.GetJson(); text != "" {
		return json.RawMessage(text)
	}
	return nil
}

func chooseKeys(chosen, all []string) []string {
	if len(chosen) > 0 {
		return chosen
	}
	return all
}

// describeKeys returns the schema of an object of which the keys alone are known.
func describeKeys(title string, keys []string) json.RawMessage {
	properties := map[string]struct{}{}
	for _, key := range keys {
		properties[key] = struct{}{}
	}
	text, err := encodeJSON(map[string]any{"title": title, "type": "object", "properties": properties})
	if err != nil { // texts have JSON
		return nil
	}
	return text
}

// getAssistantSchemas answers GET /assistants/{id}/schemas.
func getAssistantSchemas(c *call) error {
	g, err := c.readGraph(graphdv1.GraphView_GRAPH_VIEW_FULL)
	if err != nil {
		return err
	}
	return c.writeJSON(http.StatusOK, newSchemas(g.GetSpec()))
}

// getAssistantSubgraphs answers GET /assistants/{id}/subgraphs: the schemas of the graphs that are its
// nodes, by name.
func getAssistantSubgraphs(c *call) error {
	recurse, err := c.queryFlag("recurse")
	if err != nil {
		return err
	}
	g, err := c.readGraph(graphdv1.GraphView_GRAPH_VIEW_FULL)
	if err != nil {
		return err
	}
	found := map[string]schemas{}
	depth := 1
	if recurse {
		depth = deepestSubgraph
	}
	if err := c.visitSubgraphs(g.GetSpec(), "", depth, func(path string, below *graphdv1.GraphSpec) { found[path] = newSchemas(below) }); err != nil {
		return err
	}
	if wanted := c.r.PathValue("namespace"); wanted != "" {
		for path := range found {
			if path != wanted {
				delete(found, path)
			}
		}
	}
	return c.writeJSON(http.StatusOK, found)
}

// deepestSubgraph is how deep subgraphs are shown.
const deepestSubgraph = 16

// visitSubgraphs calls visit for the graphs that are nodes of a graph, and of these, down to a depth.
func (c *call) visitSubgraphs(g *graphdv1.GraphSpec, prefix string, depth int, visit func(path string, below *graphdv1.GraphSpec)) error {
	if depth == 0 {
		return nil
	}
	for _, node := range g.GetNodes() {
		named := node.GetGraph()
		if named == nil {
			continue
		}
		below, err := c.registry.GetGraph(c.ctx, &graphdv1.GetGraphRequest{Graph: named.GetGraph(), Version: named.GetVersion(), View: graphdv1.GraphView_GRAPH_VIEW_FULL})
		if err != nil {
			return err
		}
		path := prefix + node.GetName()
		visit(path, below.GetSpec())
		if err := c.visitSubgraphs(below.GetSpec(), path+"|", depth-1, visit); err != nil {
			return err
		}
	}
	return nil
}
