package payload

import "sync"

// MessageIndex knows the ids of a list of messages, so that an addition costs
// only the added messages. Lists that grew out of each other share an index: it
// may know more ids than are in a list, never less. Its methods may be called at
// the same time.
type MessageIndex struct {
	mu  sync.Mutex
	ids map[string]struct{}
}

// IndexMessages makes the index of a list; nil when something in it is not a
// message as MergeMessages leaves them, with a type and an id.
func IndexMessages(list []JSON) *MessageIndex {
	missing := false
	all, err := readMessages(list, func() string {
		missing = true
		return ""
	})
	if err != nil || missing {
		return nil
	}
	x := &MessageIndex{ids: make(map[string]struct{}, len(all))}
	for i := range all {
		if all[i].isRemoval || all[i].text != list[i] {
			return nil
		}
		x.ids[all[i].id] = struct{}{}
	}
	return x
}

// PlanAppend reports whether an update does nothing but add messages, which it then
// returns as MergeMessages would: with ids made by newID where they have none. When
// it reports false, MergeMessages returns the effect of the update, or its error.
// Note says that the messages have been added.
func (m *MessageIndex) PlanAppend(update JSON, newID func(n int) string) (added []JSON, note func(), ok bool) {
	items := []JSON{Trim(update)}
	if KindOf(update) == ArrayKind && !isPair(update) {
		var err error
		if items, err = Elements(update); err != nil {
			return nil, nil, false
		}
	}
	given := 0
	fresh, err := readMessages(items, func() string {
		given++
		return newID(given - 1)
	})
	if err != nil {
		return nil, nil, false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range fresh {
		if _, known := m.ids[fresh[i].id]; known || fresh[i].isRemoval {
			return nil, nil, false
		}
		for k := range i {
			if fresh[k].id == fresh[i].id {
				return nil, nil, false
			}
		}
	}
	return messageTexts(fresh), func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		for i := range fresh {
			m.ids[fresh[i].id] = struct{}{}
		}
	}, true
}
