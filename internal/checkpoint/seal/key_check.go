package seal

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// A store keeps a check for each key that has ever sealed its records: this text, sealed
// with the key.
const keyCheckText = "graphd"

func keyCheckPlace(id string) RecordPlace { return RecordPlace{Kind: "check", Name: id} }

// ActiveKeyCheck returns the check of the active key, "" = there is none.
func (b *Box) ActiveKeyCheck() string {
	if b.activeKey == nil {
		return ""
	}
	return b.Seal(keyCheckPlace(b.activeKey.id), keyCheckText)
}

// VerifyKeys compares the keys with those that sealed the records of a store. checks has
// their checks from ActiveKeyCheck, by the ids of the keys. It returns the ids of the keys
// that the Box lacks, sorted. It returns a *KeyError when a key differs from the key that
// the store knows by its id, or when the Box has no key that the store knows.
func (b *Box) VerifyKeys(checks map[string]string) (missing []string, err error) {
	for id, sealed := range checks {
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
	if len(missing) == 0 || len(missing) < len(checks) {
		return missing, nil
	}
	return nil, &KeyError{
		Is:   fmt.Sprintf("that the store was sealed with, %s, are not given", quoteIDs(missing)),
		Want: "name a file that has them with --encryption-keys; new keys may stand before them",
	}
}

// MissingKeysWarning returns the warning of missing keys, "" when none is missing.
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
