package agentserver

import (
	"cmp"
	"net/http"
	"slices"
	"strings"

	"google.golang.org/protobuf/types/known/timestamppb"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
)

// cronSearch asks for crons.
type cronSearch struct {
	Assistant string   `json:"assistant_id"`
	Thread    string   `json:"thread_id"`
	Enabled   *bool    `json:"enabled"`
	Metadata  metadata `json:"metadata"`
	Limit     *int     `json:"limit"`
	Offset    int      `json:"offset"`
	SortBy    string   `json:"sort_by"`
	SortOrder string   `json:"sort_order"`
	Select    []string `json:"select"`
}

// cronOrders lists how crons may be sorted.
func cronOrders() []string {
	return []string{"created_at", "updated_at", "cron_id", "assistant_id", "thread_id", "next_run_date", "end_time"}
}

// readCronSearch reads the search in the body of the request.
func (c *call) readCronSearch() (*cronSearch, error) {
	s := &cronSearch{}
	if err := c.decodeBody(s); err != nil {
		return nil, err
	}
	switch {
	case s.Offset < 0 || s.Offset > largestOffset:
		return nil, invalidField("offset", "is %d: want a number from 0 to %d", s.Offset, largestOffset)
	case s.SortBy != "" && !slices.Contains(cronOrders(), s.SortBy):
		return nil, invalidField("sort_by", "is %.100q: want %s", s.SortBy, strings.Join(cronOrders(), ", "))
	case s.SortOrder != "" && s.SortOrder != ascending && s.SortOrder != descending:
		return nil, invalidField("sort_order", "is %.100q: want %s or %s", s.SortOrder, ascending, descending)
	}
	switch {
	case s.Assistant == "":
	case isID(s.Assistant):
		s.Assistant = strings.ToLower(s.Assistant)
	default: // the name of a graph stands for its default assistant
		s.Assistant = defaultAssistant(s.Assistant)
	}
	return s, nil
}

// listedCron is what a search needs of a cron to sort it.
type listedCron struct {
	id, assistant, thread       string
	created, updated, next, end int64
}

func newListedCron(kept *graphdv1.Cron) listedCron {
	return listedCron{
		kept.GetCronId(), cronAssistant(kept), kept.GetRun().GetThreadId(), kept.GetCreateTime().AsTime().UnixNano(),
		kept.GetUpdateTime().AsTime().UnixNano(), sortTime(kept.GetNextTime()), sortTime(kept.GetEndTime()),
	}
}

// sortTime returns a time as a number. None sorts behind all others.
func sortTime(at *timestamppb.Timestamp) int64 {
	if at == nil {
		return 1<<63 - 1
	}
	return at.AsTime().UnixNano()
}

// visitCrons calls visit for the crons that are asked for, the newest first. An index finds their
// thread and texts of their metadata; the rest is compared.
func (s *cronSearch) visitCrons(c *call, visit func(*graphdv1.Cron)) error {
	if err := c.server.scans.takeSlot(c.ctx); err != nil {
		return err
	}
	defer c.server.scans.freeSlot()
	indexed, rest := (&assistantSearch{Metadata: s.Metadata}).splitMetadata()
	request := &graphdv1.ListCronsRequest{PageSize: graphsPage, ThreadId: s.Thread, Metadata: indexed}
	for {
		page, err := c.crons.ListCrons(c.ctx, request)
		if err != nil {
			return err
		}
		for _, kept := range page.GetCrons() {
			switch {
			case s.Assistant != "" && s.Assistant != cronAssistant(kept):
			case s.Enabled != nil && *s.Enabled == kept.GetPaused():
			case len(rest) > 0 && !hasMetadata(readLabels(kept.GetMetadata()), rest):
			default:
				visit(kept)
			}
		}
		if request.PageToken = page.GetNextPageToken(); request.PageToken == "" {
			return nil
		}
	}
}

// compareCrons puts crons in the order of the search: the newest first, if it does not say.
func (s *cronSearch) compareCrons(a, b listedCron) int {
	var by int
	switch s.SortBy {
	case "cron_id":
	case "assistant_id":
		by = strings.Compare(a.assistant, b.assistant)
	case "thread_id":
		by = strings.Compare(a.thread, b.thread)
	case "updated_at":
		by = cmp.Compare(a.updated, b.updated)
	case "next_run_date":
		by = cmp.Compare(a.next, b.next)
	case "end_time":
		by = cmp.Compare(a.end, b.end)
	default:
		by = cmp.Compare(a.created, b.created)
	}
	if by = cmp.Or(by, strings.Compare(a.id, b.id)); s.SortOrder == ascending {
		return by
	}
	return -by
}

// searchCrons answers POST /runs/crons/search.
func searchCrons(c *call) error {
	s, err := c.readCronSearch()
	if err != nil {
		return err
	}
	limit, err := pageSize(s.Limit)
	if err != nil {
		return err
	}
	var list []listedCron
	if err := s.visitCrons(c, func(kept *graphdv1.Cron) { list = append(list, newListedCron(kept)) }); err != nil {
		return err
	}
	slices.SortFunc(list, s.compareCrons)
	from := min(s.Offset, len(list))
	page, err := s.readPage(c, list[from:min(from+limit, len(list))])
	if err != nil {
		return err
	}
	setPaginationHeaders(c.w.Header(), s.Offset, limit, len(page))
	return c.writeJSON(http.StatusOK, page)
}

// readPage reads what is shown of a page. A cron that was deleted meanwhile is left out.
func (s *cronSearch) readPage(c *call, list []listedCron) ([]any, error) {
	page := make([]any, 0, len(list))
	for i := range list {
		kept, err := c.crons.GetCron(c.ctx, &graphdv1.GetCronRequest{CronId: list[i].id})
		if reasonOf(err) == "CRON_NOT_FOUND" {
			continue
		}
		if err != nil {
			return nil, err
		}
		shown := newCron(kept)
		if err := c.holdGathered(len(shown.Payload)); err != nil {
			return nil, err
		}
		chosen, err := chooseFields(shown, s.Select)
		if err != nil {
			return nil, err
		}
		page = append(page, chosen)
	}
	return page, nil
}

// countCrons answers POST /runs/crons/count.
func countCrons(c *call) error {
	s, err := c.readCronSearch()
	if err != nil {
		return err
	}
	n := 0
	if err := s.visitCrons(c, func(*graphdv1.Cron) { n++ }); err != nil {
		return err
	}
	return c.writeJSON(http.StatusOK, n)
}
