package seal

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// A store keeps a word per key that it was ever sealed with, by which the key
// is known again.
const keyCheckText = "graphd"

func keyCheckPlace(id string) RecordPlace { return RecordPlace{Kind: "check", Name: id} }

// ActiveKeyCheck is what a store keeps of the active key, "" = there is none.
func (b *Box) ActiveKeyCheck() string {
	if b.activeKey == nil {
		return ""
	}
	return b.Seal(keyCheckPlace(b.activeKey.id), keyCheckText)
}

// VerifyKeys compares the keys with those a store was sealed with before: words has
// what Word made, by the ids of the keys. It fails with a *KeyError when a key
// is another one than the store knows by its id, or when none that the store
// knows is given. missing are those it knows besides, sorted.
func (b *Box) VerifyKeys(words map[string]string) (missing []string, err error) {
	for id, sealed := range words {
		if b.keys[id] == nil {
			missing = append(missing, id)
			continue
		}
		if got, err := b.Open(keyCheckPlace(id), sealed); err != nil || got != keyCheckText {
			return nil, &KeyError{
				ID: id, Is: "is not the one that the store knows by this id",
				Want: "give the right one; a new key needs a new id",
			}
		}
	}
	slices.Sort(missing)
	if len(missing) == 0 || len(missing) < len(words) {
		return missing, nil
	}
	return nil, &KeyError{
		Is:   fmt.Sprintf("that the store was sealed with, %s, are not given", quoteIDs(missing)),
		Want: "name a file that has them with --encryption-keys; new keys may stand before them",
	}
}

// MissingKeysWarning says what follows when keys are missing, "" when none are.
func MissingKeysWarning(ids []string) string {
	if len(ids) == 0 {
		return ""
	}
	return "the keys " + quoteIDs(ids) + " are not given: calls for threads with records of theirs fail"
}

func quoteIDs(ids []string) string {
	list := make([]string, len(ids))
	for i, id := range ids {
		list[i] = strconv.Quote(id)
	}
	return strings.Join(list, ", ")
}
