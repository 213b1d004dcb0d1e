package agentserver

import (
	"cmp"
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
)

// assistantSearch asks for assistants.
type assistantSearch struct {
	Graph     string   `json:"graph_id"`
	Name      string   `json:"name"`
	Metadata  metadata `json:"metadata"`
	Limit     *int     `json:"limit"`
	Offset    int      `json:"offset"`
	SortBy    string   `json:"sort_by"`
	SortOrder string   `json:"sort_order"`
	Select    []string `json:"select"`
}

// assistantOrders lists how assistants may be sorted.
func assistantOrders() []string {
	return []string{"created_at", "updated_at", "assistant_id", "graph_id", "name"}
}

func (s *assistantSearch) validate() error {
	switch {
	case s.Offset < 0:
		return invalidField("offset", "is %d: want 0 or more", s.Offset)
	case s.SortBy != "" && !slices.Contains(assistantOrders(), s.SortBy):
		return invalidField("sort_by", "is %.100q: want %s", s.SortBy, strings.Join(assistantOrders(), ", "))
	case s.SortOrder != "" && s.SortOrder != "asc" && s.SortOrder != "desc":
		return invalidField("sort_order", "is %.100q: want asc or desc", s.SortOrder)
	}
	return nil
}

// matches reports whether an assistant is one of those that are asked for.
func (s *assistantSearch) matches(a *assistant) bool {
	if s.Graph != "" && s.Graph != a.Graph || !strings.Contains(strings.ToLower(a.Name), strings.ToLower(s.Name)) {
		return false
	}
	for key, want := range s.Metadata {
		if !containsJSON(a.Metadata[key], want) {
			return false
		}
	}
	return true
}

// listedAssistant is what a search needs of an assistant to sort it.
type listedAssistant struct {
	id, graph, name  string
	created, updated int64
	shown            *assistant // nil = it is read when it is on the page
}

// findAssistants returns all assistants that the body of the request asks for, in its order.
func (s *assistantSearch) findAssistants(c *call) ([]listedAssistant, error) {
	if err := c.decodeBody(s); err != nil {
		return nil, err
	}
	if err := s.validate(); err != nil {
		return nil, err
	}
	var list []listedAssistant
	err := c.visitGraphs(func(g *graphdv1.Graph) bool {
		if a := newDefaultAssistant(g); s.matches(&a) {
			made := g.GetCreateTime().AsTime().UnixNano()
			list = append(list, listedAssistant{a.ID, a.Graph, a.Name, made, made, &a})
		}
		return true
	})
	if err == nil {
		err = s.visitKept(c, func(kept *graphdv1.Assistant) {
			list = append(list, listedAssistant{
				kept.GetAssistantId(), kept.GetGraph(), kept.GetName(), kept.GetCreateTime().AsTime().UnixNano(), kept.GetUpdateTime().AsTime().UnixNano(), nil,
			})
		})
	}
	slices.SortStableFunc(list, s.compare)
	return list, err
}

// visitKept calls visit for the assistants that are kept and asked for. An index finds their graph
// and texts of their metadata; the rest is compared.
func (s *assistantSearch) visitKept(c *call, visit func(*graphdv1.Assistant)) error {
	request := &graphdv1.ListAssistantsRequest{PageSize: graphsPage, Graph: s.Graph, Metadata: map[string]string{}}
	for key, value := range s.Metadata {
		if text, isTyped := labelText(value); !isTyped && !json.Valid([]byte(text)) {
			request.Metadata[key] = text
		}
	}
	for {
		page, err := c.assistants.ListAssistants(c.ctx, request)
		if err != nil {
			return err
		}
		for _, kept := range page.GetAssistants() {
			if a := newAssistant(kept); s.matches(&a) {
				visit(kept)
			}
		}
		if request.PageToken = page.GetNextPageToken(); request.PageToken == "" {
			return nil
		}
	}
}

// compare puts assistants in the order of the search: the newest first, if it does not say.
func (s *assistantSearch) compare(a, b listedAssistant) int {
	var by int
	switch s.SortBy {
	case "assistant_id":
		by = strings.Compare(a.id, b.id)
	case "graph_id":
		by = strings.Compare(a.graph, b.graph)
	case "name":
		by = strings.Compare(strings.ToLower(a.name), strings.ToLower(b.name))
	case "updated_at":
		by = cmp.Compare(a.updated, b.updated)
	default:
		by = cmp.Compare(a.created, b.created)
	}
	if by = cmp.Or(by, strings.Compare(a.id, b.id)); s.SortOrder == "asc" {
		return by
	}
	return -by
}

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
	from := min(search.Offset, len(list))
	page, err := search.readPage(c, list[from:min(from+limit, len(list))])
	if err != nil {
		return err
	}
	setPaginationHeaders(c.w.Header(), search.Offset, limit, len(page))
	return c.writeJSON(http.StatusOK, page)
}

// readPage reads what is shown of a page. An assistant that was deleted meanwhile is left out.
func (s *assistantSearch) readPage(c *call, list []listedAssistant) ([]any, error) {
	page := make([]any, 0, len(list))
	for i := range list {
		shown := list[i].shown
		if shown == nil {
			kept, err := c.assistants.GetAssistant(c.ctx, &graphdv1.GetAssistantRequest{AssistantId: list[i].id})
			if reasonOf(err) == "ASSISTANT_NOT_FOUND" {
				continue
			}
			if err != nil {
				return nil, err
			}
			a := newAssistant(kept)
			shown = &a
			if err := c.holdGathered(len(a.Config) + len(a.Context)); err != nil {
				return nil, err
			}
		}
		chosen, err := chooseFields(*shown, s.Select)
		if err != nil {
			return nil, err
		}
		page = append(page, chosen)
	}
	return page, nil
}

// countAssistants answers POST /assistants/count.
func countAssistants(c *call) error {
	list, err := new(assistantSearch).findAssistants(c)
	if err != nil {
		return err
	}
	return c.writeJSON(http.StatusOK, len(list))
}
