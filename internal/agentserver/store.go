package agentserver

import (
	"encoding/json"
	"math"
	"net/http"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
)

// storedItem is an item as clients of LangGraph Server know it.
type storedItem struct {
	Namespace []string        `json:"namespace"`
	Key       string          `json:"key"`
	Value     json.RawMessage `json:"value"`
	CreatedAt string          `json:"created_at"`
	UpdatedAt string          `json:"updated_at"`
}

// foundItem is an item that a search has found. Nothing has a score without an index by meaning.
type foundItem struct {
	storedItem

	Score *float64 `json:"score"`
}

func newStoredItem(i *graphdv1.Item) storedItem {
	return storedItem{
		Namespace: i.GetNamespace(), Key: i.GetKey(), Value: json.RawMessage(i.GetValue().GetJson()),
		CreatedAt: formatTime(i.GetCreateTime()), UpdatedAt: formatTime(i.GetUpdateTime()),
	}
}

// itemPut asks to put an item.
type itemPut struct {
	Namespace []string        `json:"namespace"`
	Key       string          `json:"key"`
	Value     json.RawMessage `json:"value"`
	Index     json.RawMessage `json:"index"` // which texts are embedded: none are
	TTL       *float64        `json:"ttl"`   // minutes
}

// putItem answers PUT /store/items.
func putItem(c *call) error {
	var asked itemPut
	if err := c.decodeBody(&asked); err != nil {
		return err
	}
	if err := checkIndex(asked.Index); err != nil {
		return err
	}
	request := &graphdv1.PutItemRequest{Namespace: asked.Namespace, Key: asked.Key}
	if !isAbsent(asked.Value) {
		request.Value = jsonPayload(asked.Value)
	}
	if asked.TTL != nil {
		ttl, err := parseMinutes(*asked.TTL)
		if err != nil {
			return err
		}
		request.Ttl = durationpb.New(ttl)
	}
	if _, err := c.items.PutItem(c.ctx, request); err != nil {
		return toStoreError(err)
	}
	return c.writeNothing()
}

func jsonPayload(text json.RawMessage) *graphdv1.Payload {
	return &graphdv1.Payload{Body: &graphdv1.Payload_Json{Json: string(text)}}
}

// checkIndex checks what says which texts of a value are embedded.
func checkIndex(index json.RawMessage) error {
	var paths []string
	if isAbsent(index) || string(index) == "false" || json.Unmarshal(index, &paths) == nil {
		return nil
	}
	return invalidField("index", "is %.100s: want false, or a list of paths", index)
}

// parseMinutes converts a number of minutes.
func parseMinutes(minutes float64) (time.Duration, error) {
	const most = float64(math.MaxInt64 / int64(time.Minute))
	if !(minutes > 0 && minutes < most) {
		return 0, invalidField("ttl", "is %v: want a number of minutes above 0, or none for an item that does not expire", minutes)
	}
	return time.Duration(minutes * float64(time.Minute)), nil
}

// getItem answers GET /store/items. There is null for an item that there is not.
func getItem(c *call) error {
	refreshes := true
	if c.r.URL.Query().Has("refresh_ttl") {
		var err error
		if refreshes, err = c.queryFlag("refresh_ttl"); err != nil {
			return err
		}
	}
	query := c.r.URL.Query()
	item, err := c.items.GetItem(c.ctx, &graphdv1.GetItemRequest{
		Namespace: strings.Split(query.Get("namespace"), "."), Key: query.Get("key"), RefreshTtl: refreshes,
	})
	if reasonOf(err) == "ITEM_NOT_FOUND" {
		return c.writeJSON(http.StatusOK, nil)
	}
	if err != nil {
		return toStoreError(err)
	}
	return c.writeJSON(http.StatusOK, newStoredItem(item))
}

// deleteItem answers DELETE /store/items.
func deleteItem(c *call) error {
	var asked struct {
		Namespace []string `json:"namespace"`
		Key       string   `json:"key"`
	}
	if err := c.decodeBody(&asked); err != nil {
		return err
	}
	if _, err := c.items.DeleteItem(c.ctx, &graphdv1.DeleteItemRequest{Namespace: asked.Namespace, Key: asked.Key}); err != nil {
		return toStoreError(err)
	}
	return c.writeNothing()
}

// itemSearch asks for items.
type itemSearch struct {
	Prefix  []string        `json:"namespace_prefix"`
	Filter  json.RawMessage `json:"filter"`
	Limit   int64           `json:"limit"`
	Offset  int64           `json:"offset"`
	Query   string          `json:"query"`
	Refresh *bool           `json:"refresh_ttl"`
}

// searchItems answers POST /store/items/search.
func searchItems(c *call) error {
	var asked itemSearch
	if err := c.decodeBody(&asked); err != nil {
		return err
	}
	request := &graphdv1.SearchItemsRequest{
		NamespacePrefix: asked.Prefix, Limit: clampInt32(asked.Limit), Offset: clampInt32(asked.Offset), Query: asked.Query,
		RefreshTtl: asked.Refresh == nil || *asked.Refresh,
	}
	if !isAbsent(asked.Filter) {
		request.Filter = jsonPayload(asked.Filter)
	}
	page, err := c.items.SearchItems(c.ctx, request)
	if err != nil {
		return toStoreError(err)
	}
	found := make([]foundItem, len(page.GetItems()))
	for i, item := range page.GetItems() {
		if err := c.holdGathered(len(item.GetValue().GetJson())); err != nil {
			return err
		}
		found[i].storedItem = newStoredItem(item)
	}
	return c.writeJSON(http.StatusOK, map[string]any{"items": found})
}

// clampInt32 returns the number nearest to n that a message of gRPC takes.
func clampInt32(n int64) int32 { return int32(min(max(n, math.MinInt32), math.MaxInt32)) }

// namespaceSearch asks for namespaces.
type namespaceSearch struct {
	Prefix   []string `json:"prefix"`
	Suffix   []string `json:"suffix"`
	MaxDepth *int64   `json:"max_depth"`
	Limit    *int64   `json:"limit"`
	Offset   int64    `json:"offset"`
}

// listNamespaces answers POST /store/namespaces.
func listNamespaces(c *call) error {
	var asked namespaceSearch
	if err := c.decodeBody(&asked); err != nil {
		return err
	}
	request := &graphdv1.ListItemNamespacesRequest{Prefix: asked.Prefix, Suffix: asked.Suffix, Offset: clampInt32(asked.Offset)}
	if asked.MaxDepth != nil {
		if request.MaxDepth = clampInt32(*asked.MaxDepth); request.MaxDepth < 1 {
			return invalidField("max_depth", "is %d: want 1 or more", *asked.MaxDepth)
		}
	}
	if asked.Limit != nil {
		if request.Limit = clampInt32(*asked.Limit); request.Limit < 1 {
			return invalidField("limit", "is %d: want 1 or more", *asked.Limit)
		}
	}
	page, err := c.items.ListItemNamespaces(c.ctx, request)
	if err != nil {
		return toStoreError(err)
	}
	found := make([][]string, len(page.GetNamespaces()))
	for i, namespace := range page.GetNamespaces() {
		found[i] = namespace.GetLabels()
	}
	return c.writeJSON(http.StatusOK, map[string]any{"namespaces": found})
}

// toStoreError returns what clients get of an error of the store API, whose fields have the names that
// they have in graphd.
func toStoreError(err error) error { return newShownError(err) }
