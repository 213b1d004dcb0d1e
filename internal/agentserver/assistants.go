package agentserver

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
)

// assistant is the default assistant of a graph.
type assistant struct {
	ID          string         `json:"assistant_id"`
	Graph       string         `json:"graph_id"`
	Name        string         `json:"name"`
	Description *string        `json:"description"`
	Config      map[string]any `json:"config"`
	Context     map[string]any `json:"context"`
	Metadata    metadata       `json:"metadata"`
	Version     int            `json:"version"`
	Created     string         `json:"created_at"`
	Updated     string         `json:"updated_at"`
}

func newAssistant(g *graphdv1.Graph) assistant {
	a := assistant{
		ID: defaultAssistant(g.GetGraph()), Graph: g.GetGraph(), Name: g.GetGraph(), Config: map[string]any{}, Context: map[string]any{},
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

// findGraph returns the name of the graph of an assistant, which is named by its id or that of its
// graph. A name is not looked up.
func (c *call) findGraph(assistant string) (string, error) {
	if !isID(assistant) {
		return assistant, nil
	}
	id := strings.ToLower(assistant)
	found := ""
	err := c.visitGraphs(func(g *graphdv1.Graph) bool {
		if defaultAssistant(g.GetGraph()) == id {
			found = g.GetGraph()
		}
		return found == ""
	})
	if err == nil && found == "" {
		err = newError(http.StatusNotFound, "ASSISTANT_NOT_FOUND", fmt.Sprintf("there is no assistant %s: POST /assistants/search lists them", id))
	}
	return found, err
}

// readGraph returns the graph of the assistant in the path.
func (c *call) readGraph(view graphdv1.GraphView) (*graphdv1.Graph, error) {
	name, err := c.findGraph(c.r.PathValue("assistant"))
	if err != nil {
		return nil, err
	}
	return c.registry.GetGraph(c.ctx, &graphdv1.GetGraphRequest{Graph: name, View: view})
}

// getAssistant answers GET /assistants/{id}.
func getAssistant(c *call) error {
	g, err := c.readGraph(graphdv1.GraphView_GRAPH_VIEW_BASIC)
	if err != nil {
		return err
	}
	return c.writeJSON(http.StatusOK, newAssistant(g))
}

// listAssistantVersions answers POST /assistants/{id}/versions: a default assistant has one.
func listAssistantVersions(c *call) error {
	g, err := c.readGraph(graphdv1.GraphView_GRAPH_VIEW_BASIC)
	if err != nil {
		return err
	}
	return c.writeJSON(http.StatusOK, []assistant{newAssistant(g)})
}

// assistantSearch asks for assistants.
type assistantSearch struct {
	Graph    string   `json:"graph_id"`
	Name     string   `json:"name"`
	Metadata metadata `json:"metadata"`
	Limit    *int     `json:"limit"`
	Offset   int      `json:"offset"`
}

// matches reports whether an assistant is one of those that are asked for.
func (s *assistantSearch) matches(a *assistant) bool {
	if s.Graph != "" && s.Graph != a.Graph || s.Name != "" && s.Name != a.Name {
		return false
	}
	for key, want := range s.Metadata {
		if !containsJSON(a.Metadata[key], want) {
			return false
		}
	}
	return true
}

// findAssistants returns all assistants that the body of the request asks for.
func (s *assistantSearch) findAssistants(c *call) ([]assistant, error) {
	if err := c.decodeBody(s); err != nil {
		return nil, err
	}
	list := []assistant{}
	err := c.visitGraphs(func(g *graphdv1.Graph) bool {
		if a := newAssistant(g); s.matches(&a) {
			list = append(list, a)
		}
		return true
	})
	return list, err
}

// Bounds of pages of this API.
const (
	standardPage = 10
	largestPage  = 1000
)

// searchAssistants answers POST /assistants/search.
func searchAssistants(c *call) error {
	var search assistantSearch
	list, err := search.findAssistants(c)
	if err != nil {
		return err
	}
	limit, err := pageSize(search.Limit)
	if err != nil {
		return err
	}
	if search.Offset < 0 {
		return invalidField("offset", "is %d: want 0 or more", search.Offset)
	}
	from := min(search.Offset, len(list))
	return c.writeJSON(http.StatusOK, list[from:min(from+limit, len(list))])
}

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

// countAssistants answers POST /assistants/count.
func countAssistants(c *call) error {
	list, err := new(assistantSearch).findAssistants(c)
	if err != nil {
		return err
	}
	return c.writeJSON(http.StatusOK, len(list))
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
