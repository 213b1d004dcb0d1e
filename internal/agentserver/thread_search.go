package agentserver

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/proto"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
)

// threadSearch asks for threads.
type threadSearch struct {
	Metadata  metadata        `json:"metadata"`
	Values    json.RawMessage `json:"values"`
	Status    string          `json:"status"`
	IDs       []string        `json:"ids"`
	Limit     *int            `json:"limit"`
	Offset    int             `json:"offset"`
	SortBy    string          `json:"sort_by"`
	SortOrder string          `json:"sort_order"`
	Select    []string        `json:"select"`
	Extract   json.RawMessage `json:"extract"`
}

// validate refuses what can't be found by an index.
func (s *threadSearch) validate() error {
	switch {
	case !isAbsent(s.Values) && string(s.Values) != "{}":
		return invalidField("values", "is not served: threads are found by metadata and status, not by what is in their states")
	case !isAbsent(s.Extract) && string(s.Extract) != "{}":
		return invalidField("extract", "is not served: read values of the thread")
	case s.Offset < 0 || s.Offset > largestOffset:
		return invalidField("offset", "is %d: want a number from 0 to %d", s.Offset, largestOffset)
	case s.SortOrder != "" && s.SortOrder != "desc":
		return invalidField("sort_order", "is %.100q: want desc, the newest first", s.SortOrder)
	case s.SortBy != "" && s.SortBy != "created_at" && s.SortBy != "updated_at":
		return invalidField("sort_by", "is %.100q: want created_at or updated_at", s.SortBy)
	}
	return nil
}

// checkOrder refuses an order that is not that of graphd's lists: by the last change, and with a
// filter by creation.
func (s *threadSearch) checkOrder(filter string) error {
	order := "updated_at"
	if filter != "" {
		order = "created_at"
	}
	if s.SortBy == "" || s.SortBy == order {
		return nil
	}
	return invalidField("sort_by", "is %.100q: want %s, the order of a search with these conditions", s.SortBy, order)
}

// Bounds of a search.
const (
	largestOffset = 100_000
	searchedPage  = 500
	mostSearched  = 100_000 // threads that one request looks at
)

// listedThread is what a thread in a list shows, if not all is asked for.
type listedThread map[string]json.RawMessage

// newListedThread returns the chosen fields of a thread.
func newListedThread(t thread, chosen []string) (any, error) {
	if len(chosen) == 0 {
		return t, nil
	}
	text, err := encodeJSON(t)
	if err != nil {
		return nil, err
	}
	var all listedThread
	if err := json.Unmarshal(text, &all); err != nil {
		return nil, err
	}
	maps.DeleteFunc(all, func(field string, _ json.RawMessage) bool { return !slices.Contains(chosen, field) })
	return all, nil
}

// buildFilter returns the filter of graphd, and the metadata that threads must contain besides: those
// parts of objects and lists.
func (s *threadSearch) buildFilter(c *call) (filter string, rest metadata, err error) {
	var parts []string
	if s.Status != "" {
		state, err := parseThreadStatus(s.Status)
		if err != nil {
			return "", nil, err
		}
		parts = append(parts, fmt.Sprintf("state = %q", state))
	}
	graph, err := c.findSearchedGraph(s.Metadata)
	if err != nil {
		return "", nil, err
	}
	if graph != "" {
		parts = append(parts, "graph = "+quoteFilter(graph))
	}
	rest = metadata{}
	for _, key := range slices.Sorted(maps.Keys(s.Metadata)) {
		value := s.Metadata[key]
		switch key {
		case "graph_id", "assistant_id":
		default:
			rest[key] = value
			if !isNested(value) {
				text, _ := labelText(value)
				parts = append(parts, "metadata."+quoteKey(key)+" = "+quoteFilter(text))
			}
		}
	}
	return strings.Join(parts, " AND "), rest, nil
}

// findSearchedGraph returns the graph whose threads a search asks for, "" = all.
func (c *call) findSearchedGraph(asked metadata) (string, error) {
	graph, assistant := asked.readText("graph_id"), asked.readText("assistant_id")
	if assistant == "" {
		return graph, nil
	}
	of, err := c.findGraph(assistant)
	if err == nil && graph != "" && graph != of {
		err = invalidField("metadata", "has the graph_id %.100q and the assistant_id of the graph %.100q: want one of them", graph, of)
	}
	return of, err
}

// isNested reports whether a value is an object or a list.
func isNested(value json.RawMessage) bool {
	return len(value) > 0 && (value[0] == '{' || value[0] == '[')
}

// quoteFilter returns a text as filters have it.
func quoteFilter(text string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(text) + `"`
}

// quoteKey returns a key of metadata as filters have it.
func quoteKey(key string) string {
	for _, c := range key {
		isPlain := c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !isPlain {
			return quoteFilter(key)
		}
	}
	return key
}

// visitThreads calls visit for the threads that a search asks for, until it returns false. The view
// is that of the page with at most size threads.
func (s *threadSearch) visitThreads(c *call, view graphdv1.ThreadView, size int, visit func(*graphdv1.Thread) bool) error {
	filter, rest, err := s.buildFilter(c)
	if err != nil {
		return err
	}
	if err := s.checkOrder(filter); err != nil {
		return err
	}
	for token, lookedAt := "", 0; ; {
		if lookedAt >= mostSearched+searchedPage {
			return newError(http.StatusUnprocessableEntity, "SEARCH_TOO_BROAD", fmt.Sprintf(
				"the search has looked at %d threads: name a graph_id, a status, or texts and numbers of metadata that fewer threads have", lookedAt)).ofField("metadata")
		}
		page, err := c.threads.ListThreads(c.ctx, &graphdv1.ListThreadsRequest{PageSize: int32(size), PageToken: token, Filter: filter, View: view})
		if err != nil {
			return err
		}
		lookedAt += len(page.GetThreads())
		size = min(2*size, searchedPage) // a page that does not suffice finds little of what it looks at
		for _, t := range page.GetThreads() {
			if matchesSearch(t, rest) && !visit(t) {
				return nil
			}
		}
		if token = page.GetNextPageToken(); token == "" {
			return nil
		}
	}
}

// matchesSearch reports whether a thread has an id of this API, and contains metadata.
func matchesSearch(t *graphdv1.Thread, rest metadata) bool {
	if !isID(t.GetThreadId()) {
		return false
	}
	if len(rest) == 0 {
		return true
	}
	has := readLabels(t.GetMetadata())
	for key, want := range rest {
		if !containsJSON(has[key], want) {
			return false
		}
	}
	return true
}

// searchThreads answers POST /threads/search.
func searchThreads(c *call) error {
	var search threadSearch
	if err := c.decodeBody(&search); err != nil {
		return err
	}
	limit, err := pageSize(search.Limit)
	if err == nil {
		err = search.validate()
	}
	if err != nil {
		return err
	}
	found, err := search.findThreads(c, limit)
	if err != nil {
		return err
	}
	list := make([]any, 0, len(found))
	for _, t := range found {
		shown, err := newListedThread(newThread(t), search.Select)
		if err != nil {
			return err
		}
		list = append(list, shown)
	}
	if len(list) == limit {
		c.w.Header().Set("X-Pagination-Next", strconv.Itoa(search.Offset+limit))
	} else if len(list) > 0 || search.Offset == 0 { // it is the last page
		c.w.Header().Set("X-Pagination-Total", strconv.Itoa(search.Offset+len(list)))
	}
	return c.writeJSON(http.StatusOK, list)
}

// findThreads returns a page of threads.
func (s *threadSearch) findThreads(c *call, limit int) ([]*graphdv1.Thread, error) {
	if len(s.IDs) > 0 {
		return s.findNamedThreads(c, limit)
	}
	var found []*graphdv1.Thread
	if s.Offset == 0 {
		var tooLarge error
		err := s.visitThreads(c, graphdv1.ThreadView_THREAD_VIEW_FULL, min(limit, searchedPage), func(t *graphdv1.Thread) bool {
			tooLarge = c.holdGathered(proto.Size(t))
			found = append(found, t)
			return tooLarge == nil && len(found) < limit
		})
		return found, cmp.Or(err, tooLarge)
	}
	passed := 0
	var ids []string
	err := s.visitThreads(c, graphdv1.ThreadView_THREAD_VIEW_BASIC, searchedPage, func(t *graphdv1.Thread) bool {
		if passed++; passed > s.Offset {
			ids = append(ids, t.GetThreadId())
		}
		return len(ids) < limit
	})
	if err != nil {
		return nil, err
	}
	return c.readThreads(ids)
}

// readThreads returns the threads with these ids. One that was deleted meanwhile is left out.
func (c *call) readThreads(ids []string) (found []*graphdv1.Thread, err error) {
	for _, id := range ids {
		t, err := c.readThread(id)
		switch {
		case reasonOf(err) == "THREAD_NOT_FOUND":
		case err != nil:
			return nil, err
		default:
			if err := c.holdGathered(proto.Size(t)); err != nil {
				return nil, err
			}
			found = append(found, t)
		}
	}
	return found, nil
}

// findNamedThreads returns those of the named threads that a search asks for.
func (s *threadSearch) findNamedThreads(c *call, limit int) ([]*graphdv1.Thread, error) {
	if len(s.IDs) > largestPage {
		return nil, invalidField("ids", "has %d ids: want at most %d", len(s.IDs), largestPage)
	}
	var ids []string
	for _, given := range s.IDs {
		id, err := parseID("ids", given)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	all, err := c.readThreads(ids)
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(t *graphdv1.Thread) bool {
		shown := newThread(t)
		for key, want := range s.Metadata {
			if !containsJSON(shown.Metadata[key], want) {
				return true
			}
		}
		return s.Status != "" && shown.Status != s.Status
	})
	from := min(s.Offset, len(all))
	return all[from:min(from+limit, len(all))], nil
}

// countThreads answers POST /threads/count.
func countThreads(c *call) error {
	var search threadSearch
	if err := c.decodeBody(&search); err != nil {
		return err
	}
	if err := search.validate(); err != nil {
		return err
	}
	n := 0
	if err := search.visitThreads(c, graphdv1.ThreadView_THREAD_VIEW_BASIC, searchedPage, func(*graphdv1.Thread) bool {
		n++
		return true
	}); err != nil {
		return err
	}
	return c.writeJSON(http.StatusOK, n)
}
