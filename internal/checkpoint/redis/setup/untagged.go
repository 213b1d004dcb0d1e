package setup

import "context"

// fieldUntagged exists after a migration, until a server with the keys of the records has given
// the open interrupts their tags.
const fieldUntagged = "untagged"

// HasUntagged reports whether open interrupts of the store may lack their tags.
func (d *Database) HasUntagged(ctx context.Context) (bool, error) {
	found, err := d.Client.HMGet(ctx, d.Keys.MetadataKey(), fieldUntagged).Result()
	return err == nil && found[0] != nil, d.WrapError(ctx, err)
}

// RemoveUntaggedMark notes that all open interrupts have their tags.
func (d *Database) RemoveUntaggedMark(ctx context.Context) error {
	return d.WrapError(ctx, d.Client.HDel(ctx, d.Keys.MetadataKey(), fieldUntagged).Err())
}
