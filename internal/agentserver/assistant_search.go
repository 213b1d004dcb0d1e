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
	case s.Offset < 0 || s.Offset > largestOffset:
		return invalidField("offset", "is %d: want a number from 0 to %d", s.Offset, largestOffset)
	case s.SortBy != "" && !slices.Contains(assistantOrders(), s.SortBy):
		return invalidField("sort_by", "is %.100q: want %s", s.SortBy, strings.Join(assistantOrders(), ", "))
	case s.SortOrder != "" && s.SortOrder != "asc" && s.SortOrder != "desc":
		return invalidField("sort_order", "is %.100q: want asc or desc", s.SortOrder)
	}
	return nil
}

// matches reports whether an assistant is one of those that are asked for.
func (s *assistantSearch) matches(a *assistant) bool {
	if s.Graph != "" && s.Graph != a.Graph || !s.hasName(a.Name) {
		return false
	}
	return hasMetadata(a.Metadata, s.Metadata)
}

func (s *assistantSearch) hasName(name string) bool {
	return strings.Contains(strings.ToLower(name), strings.ToLower(s.Name))
}

func hasMetadata(all, wanted metadata) bool {
	for key, want := range wanted {
		if !containsJSON(all[key], want) {
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

func newListedAssistant(kept *graphdv1.Assistant) listedAssistant {
	return listedAssistant{
		kept.GetAssistantId(), kept.GetGraph(), kept.GetName(), kept.GetCreateTime().AsTime().UnixNano(), kept.GetUpdateTime().AsTime().UnixNano(), nil,
	}
}

// readSearch reads the search in the body of the request.
func readSearch(c *call) (*assistantSearch, error) {
	s := &assistantSearch{}
	if err := c.decodeBody(s); err != nil {
		return nil, err
	}
	err := s.validate()
	return s, err
}

// findFirst returns the first n assistants that are asked for, in the order of the search. It keeps no
// more than these in memory, whatever there is.
func (s *assistantSearch) findFirst(c *call, n int) ([]listedAssistant, error) {
	list, ids, err := s.listDefaults(c)
	if err != nil {
		return nil, err
	}
	if s.isNewestFirst() {
		return s.mergeNewest(c, list, ids, n)
	}
	err = s.visitKept(c, ids, graphsPage, func(kept *graphdv1.Assistant) bool {
		if list = append(list, newListedAssistant(kept)); len(list) >= 2*n+searchedPage {
			list = s.sortFirst(list, n)
		}
		return true
	})
	return s.sortFirst(list, n), err
}

// sortFirst sorts assistants, and returns the first n.
func (s *assistantSearch) sortFirst(list []listedAssistant, n int) []listedAssistant {
	slices.SortStableFunc(list, s.compare)
	return list[:min(n, len(list))]
}

// isNewestFirst reports whether the order is that of the index.
func (s *assistantSearch) isNewestFirst() bool {
	return (s.SortBy == "" || s.SortBy == "created_at") && s.SortOrder != "asc"
}

// mergeNewest merges default assistants, which are sorted, with those that are kept, until there are
// n.
func (s *assistantSearch) mergeNewest(c *call, defaults []listedAssistant, ids map[string]bool, n int) (list []listedAssistant, err error) {
	err = s.visitKept(c, ids, min(n, graphsPage), func(kept *graphdv1.Assistant) bool {
		next := newListedAssistant(kept)
		for len(defaults) > 0 && s.compare(defaults[0], next) < 0 {
			list, defaults = append(list, defaults[0]), defaults[1:]
		}
		list = append(list, next)
		return len(list) < n
	})
	list = append(list, defaults...)
	return list[:min(n, len(list))], err
}

// listDefaults returns the default assistants that are asked for, sorted, and the ids of all.
func (s *assistantSearch) listDefaults(c *call) (list []listedAssistant, ids map[string]bool, err error) {
	ids = map[string]bool{}
	err = c.visitGraphs(func(g *graphdv1.Graph) bool {
		a := newDefaultAssistant(g)
		ids[a.ID] = true
		if s.matches(&a) {
			made := g.GetCreateTime().AsTime().UnixNano()
			list = append(list, listedAssistant{a.ID, a.Graph, a.Name, made, made, &a})
		}
		return true
	})
	slices.SortStableFunc(list, s.compare)
	return list, ids, err
}

// visitKept calls visit for the assistants that are kept and asked for, the newest first, until it
// returns false. It asks for so many at first. An index finds their graph and texts of their
// metadata; the rest is compared. One with the id of a default assistant is left out: that one is
// found by the id.
func (s *assistantSearch) visitKept(c *call, defaults map[string]bool, size int, visit func(*graphdv1.Assistant) bool) error {
	indexed, rest := s.splitMetadata()
	if s.Name != "" || len(rest) > 0 {
		size = graphsPage
	}
	visitFound := func(kept *graphdv1.Assistant) bool {
		isFound := !defaults[kept.GetAssistantId()] && s.hasName(kept.GetName()) && (len(rest) == 0 || hasMetadata(readLabels(kept.GetMetadata()), rest))
		return !isFound || visit(kept)
	}
	request := &graphdv1.ListAssistantsRequest{PageSize: int32(size), Graph: s.Graph, Metadata: indexed}
	if hasMore, err := c.visitAssistants(request, visitFound); err != nil || !hasMore {
		return err
	}
	if err := c.server.scans.takeSlot(c.ctx); err != nil {
		return err
	}
	defer c.server.scans.freeSlot()
	request.PageSize = graphsPage
	for {
		if hasMore, err := c.visitAssistants(request, visitFound); err != nil || !hasMore {
			return err
		}
	}
}

// visitAssistants calls visit for the assistants of a page, until it returns false, and prepares the
// request of the next page. It reports whether there is one that is wanted.
func (c *call) visitAssistants(request *graphdv1.ListAssistantsRequest, visit func(*graphdv1.Assistant) bool) (hasMore bool, err error) {
	page, err := c.assistants.ListAssistants(c.ctx, request)
	if err != nil {
		return false, err
	}
	for _, kept := range page.GetAssistants() {
		if !visit(kept) {
			return false, nil
		}
	}
	request.PageToken = page.GetNextPageToken()
	return request.PageToken != "", nil
}

// splitMetadata returns the labels that an index finds, and the rest.
func (s *assistantSearch) splitMetadata() (indexed map[string]string, rest metadata) {
	indexed, rest = map[string]string{}, metadata{}
	for key, value := range s.Metadata {
		if text, isTyped := labelText(value); !isTyped && !json.Valid([]byte(text)) {
			indexed[key] = text
		} else {
			rest[key] = value
		}
	}
	return indexed, rest
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
	search, err := readSearch(c)
	if err != nil {
		return err
	}
	limit, err := pageSize(search.Limit)
	if err != nil {
		return err
	}
	list, err := search.findFirst(c, search.Offset+limit)
	if err != nil {
		return err
	}
	page, err := search.readPage(c, list[min(search.Offset, len(list)):])
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
	search, err := readSearch(c)
	if err != nil {
		return err
	}
	list, ids, err := search.listDefaults(c)
	if err != nil {
		return err
	}
	n := len(list)
	err = search.visitKept(c, ids, graphsPage, func(*graphdv1.Assistant) bool {
		n++
		return true
	})
	if err != nil {
		return err
	}
	return c.writeJSON(http.StatusOK, n)
}
