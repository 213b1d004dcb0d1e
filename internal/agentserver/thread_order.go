package agentserver

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
)

// Orders of searches for threads.
const (
	byCreation = "created_at"
	byUpdate   = "updated_at"
	byID       = "thread_id"
	byStatus   = "status"

	ascending  = "asc"
	descending = "desc"
)

func threadOrders() []string { return []string{byCreation, byUpdate, byID, byStatus} }

// mostSorted is how many threads one request sorts.
const mostSorted = 10_000

func (s *threadSearch) validateOrder() error {
	switch {
	case s.SortOrder != "" && s.SortOrder != ascending && s.SortOrder != descending:
		return invalidField("sort_order", "is %.100q: want %s or %s", s.SortOrder, ascending, descending)
	case s.SortBy != "" && !slices.Contains(threadOrders(), s.SortBy):
		return invalidField("sort_by", "is %.100q: want %s", s.SortBy, strings.Join(threadOrders(), ", "))
	}
	return nil
}

// needsSorting reports whether a search asks for another order than that of graphd's lists: by the
// last change, and with conditions by creation, the newest first.
func (s *threadSearch) needsSorting(f *threadFilter) bool {
	listed := byUpdate
	if f.text != onlyUUIDs {
		listed = byCreation
	}
	return s.SortOrder == ascending || s.SortBy != "" && s.SortBy != listed
}

// sortedThread is what the order of a thread needs of it.
type sortedThread struct {
	id, status       string
	created, updated int64
}

// findSortedIDs returns the ids of a page of threads that are sorted here.
func (s *threadSearch) findSortedIDs(c *call, f *threadFilter, limit int) ([]string, error) {
	var found []sortedThread
	err := c.visitThreads(f, 0, graphdv1.ThreadView_THREAD_VIEW_BASIC, searchedPage, func(t *graphdv1.Thread) bool {
		found = append(found, sortedThread{
			t.GetThreadId(), threadStatus(t.GetState()), t.GetCreateTime().AsTime().UnixNano(), t.GetUpdateTime().AsTime().UnixNano(),
		})
		return len(found) <= mostSorted
	})
	if err != nil {
		return nil, err
	}
	if len(found) > mostSorted {
		return nil, newError(http.StatusUnprocessableEntity, "SEARCH_TOO_BROAD", fmt.Sprintf(
			"the search finds more than %d threads, and no index has this order: name a graph_id, a status, or texts of metadata that fewer threads have", mostSorted)).ofField("sort_by")
	}
	slices.SortFunc(found, s.compare)
	from := min(s.Offset, len(found))
	var ids []string
	for _, one := range found[from:min(from+limit, len(found))] {
		ids = append(ids, one.id)
	}
	return ids, nil
}

// compare puts threads in the order of the search.
func (s *threadSearch) compare(a, b sortedThread) int {
	var by int
	switch s.SortBy {
	case byID:
	case byStatus:
		by = strings.Compare(a.status, b.status)
	case byCreation:
		by = cmp.Compare(a.created, b.created)
	default:
		by = cmp.Compare(a.updated, b.updated)
	}
	if by = cmp.Or(by, strings.Compare(a.id, b.id)); s.SortOrder == ascending {
		return by
	}
	return -by
}
