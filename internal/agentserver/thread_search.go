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
	}
	return s.validateOrder()
}

// Bounds of a search.
const (
	largestOffset = 100_000
	searchedPage  = 500
	mostSearched  = 100_000 // threads that one request looks at
)

// chooseFields returns the chosen fields of a thread or an assistant, all for none.
func chooseFields(of any, chosen []string) (any, error) {
	if len(chosen) == 0 {
		return of, nil
	}
	text, err := encodeJSON(of)
	if err != nil {
		return nil, err
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(text, &all); err != nil {
		return nil, err
	}
	maps.DeleteFunc(all, func(field string, _ json.RawMessage) bool { return !slices.Contains(chosen, field) })
	return all, nil
}

// threadFilter is what a search asks for, as graphd finds it.
type threadFilter struct {
	text string // the filter of graphd
	// rest is metadata that threads must contain besides, which is compared: an index has only texts of values.
	// Empty = the filter says it all.
	rest metadata
}

// onlyUUIDs is the filter of the threads of this API.
const onlyUUIDs = `uuid = "true"`

// buildFilter returns the filter of a search.
func (s *threadSearch) buildFilter(c *call) (*threadFilter, error) {
	parts := []string{onlyUUIDs}
	if s.Status != "" {
		state, err := parseThreadStatus(s.Status)
		if err != nil {
			return nil, err
		}
		parts = append(parts, fmt.Sprintf("state = %q", state))
	}
	graph, assistant, err := c.findSearchedAssistant(s.Metadata)
	if err != nil {
		return nil, err
	}
	if graph != "" {
		parts = append(parts, "graph = "+quoteFilter(graph))
	}
	if assistant != "" {
		parts = append(parts, "metadata."+quoteKey(assistantLabel)+" = "+quoteFilter(assistant))
	}
	f := &threadFilter{rest: metadata{}}
	for _, key := range slices.Sorted(maps.Keys(s.Metadata)) {
		value := s.Metadata[key]
		if slices.Contains(assignedKeys(), key) {
			continue
		}
		text, isTyped := labelText(value)
		if isTyped || json.Valid([]byte(text)) {
			f.rest[key] = value // labels of other values have the same text
		}
		if !isNested(value) {
			parts = append(parts, "metadata."+quoteKey(key)+" = "+quoteFilter(text))
		}
	}
	f.text = strings.Join(parts, " AND ")
	return f, nil
}

// findSearchedAssistant returns the graph whose threads a search asks for, "" = any, and the assistant
// whose run began last on them, "" = any. An id that no assistant has is that of one that was deleted:
// its threads are still found by it.
func (c *call) findSearchedAssistant(asked metadata) (graph, assistant string, err error) {
	graph, assistant = asked.readText("graph_id"), asked.readText("assistant_id")
	if assistant == "" {
		return graph, "", nil
	}
	of, err := c.findAssistant(assistant)
	switch {
	case reasonOf(err) == "ASSISTANT_NOT_FOUND":
		return graph, strings.ToLower(assistant), nil
	case err != nil:
		return "", "", err
	case graph != "" && graph != of.graph:
		return "", "", invalidField("metadata", "has the graph_id %.100q and the assistant_id of the graph %.100q: want one of them", graph, of.graph)
	}
	return of.graph, of.id(), nil
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

// visitThreads calls visit for the threads that a search finds after an offset, until it returns
// false. An offset needs a filter that says it all. The view is that of the page with at most size
// threads.
func (c *call) visitThreads(f *threadFilter, offset int, view graphdv1.ThreadView, size int, visit func(*graphdv1.Thread) bool) error {
	request := &graphdv1.ListThreadsRequest{PageSize: int32(size), Filter: f.text, View: view, Offset: int32(offset)}
	for lookedAt := 0; lookedAt < mostSearched+searchedPage; {
		page, err := c.threads.ListThreads(c.ctx, request)
		if err != nil {
			return err
		}
		// A page without threads has passed over some that the caller does not see.
		lookedAt += cmp.Or(len(page.GetThreads()), searchedPage)
		for _, t := range page.GetThreads() {
			if f.matches(t) && !visit(t) {
				return nil
			}
		}
		if page.GetNextPageToken() == "" {
			return nil
		}
		size = min(2*size, searchedPage) // a page that does not suffice finds little of what it looks at
		request = &graphdv1.ListThreadsRequest{PageSize: int32(size), PageToken: page.GetNextPageToken(), Filter: f.text, View: view}
	}
	return newTooBroadError()
}

// newTooBroadError refuses a search that would look at too many threads.
func newTooBroadError() error {
	return newError(http.StatusUnprocessableEntity, "SEARCH_TOO_BROAD", fmt.Sprintf(
		"the search finds or looks at more than %d threads: name a graph_id, a status, or texts of metadata that fewer threads have", mostSearched)).ofField("metadata")
}

// matches reports whether a thread that was found contains the metadata that is compared.
func (f *threadFilter) matches(t *graphdv1.Thread) bool {
	if len(f.rest) == 0 {
		return true
	}
	has := readLabels(t.GetMetadata())
	for key, want := range f.rest {
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
		shown, err := chooseFields(newThread(t), search.Select)
		if err != nil {
			return err
		}
		list = append(list, shown)
	}
	setPaginationHeaders(c.w.Header(), search.Offset, limit, len(list))
	return c.writeJSON(http.StatusOK, list)
}

// setPaginationHeaders says where the next page begins, or with the last page how many items there
// are.
func setPaginationHeaders(h http.Header, offset, limit, count int) {
	if count == limit {
		h.Set("X-Pagination-Next", strconv.Itoa(offset+limit))
	} else if count > 0 || offset == 0 {
		h.Set("X-Pagination-Total", strconv.Itoa(offset+count))
	}
}

// findThreads returns a page of threads.
func (s *threadSearch) findThreads(c *call, limit int) ([]*graphdv1.Thread, error) {
	if len(s.IDs) > 0 {
		return s.findNamedThreads(c, limit)
	}
	f, err := s.buildFilter(c)
	if err != nil {
		return nil, err
	}
	if s.needsSorting(f) {
		ids, err := s.findSortedIDs(c, f, limit)
		if err != nil {
			return nil, err
		}
		return c.readThreads(ids)
	}
	if s.Offset == 0 || len(f.rest) == 0 {
		return c.listThreads(f, s.Offset, limit)
	}
	ids, err := c.findThreadIDs(f, s.Offset, limit)
	if err != nil {
		return nil, err
	}
	return c.readThreads(ids)
}

// listThreads returns the threads that a search finds, up to a limit.
func (c *call) listThreads(f *threadFilter, offset, limit int) (found []*graphdv1.Thread, err error) {
	var tooLarge error
	err = c.visitThreads(f, offset, graphdv1.ThreadView_THREAD_VIEW_FULL, min(limit, searchedPage), func(t *graphdv1.Thread) bool {
		tooLarge = c.holdGathered(proto.Size(t))
		found = append(found, t)
		return tooLarge == nil && len(found) < limit
	})
	return found, cmp.Or(err, tooLarge)
}

// findThreadIDs returns the ids of threads that a search finds, after so many others that it
// compares.
func (c *call) findThreadIDs(f *threadFilter, offset, limit int) (ids []string, err error) {
	passed := 0
	err = c.visitThreads(f, 0, graphdv1.ThreadView_THREAD_VIEW_BASIC, searchedPage, func(t *graphdv1.Thread) bool {
		if passed++; passed > offset {
			ids = append(ids, t.GetThreadId())
		}
		return len(ids) < limit
	})
	return ids, err
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
	n, err := search.countThreads(c)
	if err != nil {
		return err
	}
	return c.writeJSON(http.StatusOK, n)
}

// countThreads returns how many threads a search finds.
func (s *threadSearch) countThreads(c *call) (n int, err error) {
	f, err := s.buildFilter(c)
	if err != nil {
		return 0, err
	}
	if len(f.rest) == 0 {
		page, err := c.threads.ListThreads(c.ctx, &graphdv1.ListThreadsRequest{PageSize: 1, Filter: f.text, CountTotal: true})
		switch {
		case err != nil:
			return 0, err
		case page.GetTotalSize() > mostSearched:
			return 0, newTooBroadError()
		case page.TotalSize != nil: //nolint:protogetter // unset is another answer than none
			return int(page.GetTotalSize()), nil
		}
	}
	err = c.visitThreads(f, 0, graphdv1.ThreadView_THREAD_VIEW_BASIC, searchedPage, func(*graphdv1.Thread) bool {
		n++
		return true
	})
	return n, err
}
