package fs

// The procedures that must not be done twice. Each is one call of verified code, with a place for a record, or with
// none: for callers that do not send calls again, and on volumes that were made without places.

// Once implements OnceFileSystem.
func (v *FS) Once(id *CallID) FileSystem { return &FS{v.volume, id, v.deferred, v.inside} }

// A onceOp does a procedure, and leaves a record of it at p. If the call has a record there already, it is only
// answered: again.
type onceOp func(t *txn, p *place) (again bool)

// once is run for a call that may come again, if id is not nil.
func (v *FS) once(c *call, procedure uint32, id *CallID, op onceOp) error {
	c.Make(procedure, 0, v.deferred, 0)
	if err := v.enter(); err != nil {
		return err
	}
	defer v.leave()
	at := v.replies.begin(id)
	c.Record = at != nil
	again := false
	err := v.carry(c, func(t *txn) {
		to := &nowhere
		if c.Record {
			to = at
		}
		again = op(t, to)
	})
	v.replies.end(at, &c.Call, again)
	return err
}

// nowhere is the place of a call that leaves no record.
var nowhere place
