// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/internal/jsontree"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/watch/diff"
	"github.com/setpoint-io/setpoint/watch/event"
)

// Options say how an Observer works.
type Options struct {
	// Kind is the kind of the objects.
	Kind event.Kind
	// Schema says how their lists are merged. If it is zero, it is the schema of the
	// built-in kind, or diff.Generic for a kind that has none.
	Schema diff.Schema
	// Hide are rules for hidden values, beyond those of Secrets. Rules for other kinds may
	// be among them.
	Hide []Rule
	// Selected says that the objects are selected by their labels or fields. An object that
	// is not selected any more is a deleted one, and may come and go again.
	Selected bool
	// Clock is the time of events; time.Now if it is nil.
	Clock func() time.Time
	// Key is for the tags of hidden values. If it is empty, the Observer makes one of its
	// own, and tags of different observers or processes cannot be compared.
	Key []byte
}

// Observer makes events of the changes of one kind. It is safe for concurrent use.
type Observer struct {
	kind     event.Kind
	schema   diff.Schema
	hide     []diff.Path
	selected bool
	beats    *beats
	clock    func() time.Time
	key      []byte
}

// New returns an Observer.
func New(o Options) *Observer {
	if o.Schema.IsZero() {
		schema, ok := diff.Builtin(o.Kind)
		if !ok {
			schema = diff.Generic()
		}
		o.Schema = schema
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if len(o.Key) == 0 {
		o.Key = make([]byte, sha256.Size)
		rand.Read(o.Key) // never fails: it would end the process
	}
	return &Observer{
		kind: o.Kind, schema: o.Schema, selected: o.Selected, clock: o.Clock, key: slices.Clone(o.Key),
		hide: patterns(o.Kind, o.Hide), beats: beatsOf(o.Kind.Group, o.Kind.Kind),
	}
}

// Change is what happened to an object.
type Change struct {
	Verb event.Verb
	// Old and New are the states as JSON trees, as they came, with managedFields. Old is
	// nil for a creation and where it is not known, New for a deletion. The Observer does not
	// write to them, and the event shares what is not hidden of them.
	Old, New map[string]any
	// Kept says that Old is a state that [Observer.Keep] returned, in this process or an earlier one.
	Kept bool
	// Classes are the classes of an update whose old state is not known, from digests.
	// Otherwise they come from the fields that differ.
	Classes []event.Class
	// Missed and Stale are those of the event.
	Missed, Stale bool
}

// Event returns the event of a change.
func (o *Observer) Event(c Change) *event.Event {
	switch c.Verb { //nolint:exhaustive // the others have both states, or may have
	case event.Created, event.Existing:
		c.Old = nil
	case event.Deleted:
		if c.Old == nil {
			c.Old = c.New
		}
		c.New = nil
	}
	subject := c.New
	if subject == nil {
		subject = c.Old
	}
	e := &event.Event{Time: o.clock(), Verb: c.Verb, Kind: o.kind, Missed: c.Missed, Stale: c.Stale}
	e.Key.Namespace, e.Key.Name = text(subject, "namespace"), text(subject, "name")
	e.UID = types.UID(text(subject, "uid"))
	e.Version = text(subject, "resourceVersion")
	e.ID = o.identity(e)

	full := pair{old: withoutManagedFields(c.Old), new: withoutManagedFields(c.New)}
	safe := pair{old: o.hidden(full.old), new: o.hidden(full.new)}
	if c.Kept {
		safe.old = full.old // it has tags for hidden values, which are compared with those of the new state
		full.new = o.hiddenAs(full.new, full.old)
	}
	e.Old, e.New = safe.old, safe.new

	var changed []diff.Difference
	if full.old != nil && full.new != nil {
		changed = diff.Compare(full.old, full.new, o.schema)
		changed = slices.DeleteFunc(changed, func(d diff.Difference) bool { return isLeftOut(d.Path, c.Verb) })
		e.Fields = o.fields(changed, full, safe)
		for i := range e.Fields {
			f := &e.Fields[i]
			f.Hidden = f.Hidden || c.Kept && (hasTag(f.From) || hasTag(f.To)) // of a kept state only the tag is known
		}
	}
	e.Classes = []event.Class{event.Content}
	if c.Verb == event.Updated || c.Verb == event.Settled {
		switch {
		case full.old != nil:
			e.Classes = classes(e.Fields)
		case len(c.Classes) > 0:
			e.Classes = slices.Clone(c.Classes)
		}
	}
	if c.Verb != event.Deleted {
		e.Authors = o.authors(c, changed)
	}
	return e
}

// isLeftOut reports whether a difference is no field of the event: bookkeeping, and the UID and the
// creation of two objects of one name.
func isLeftOut(p diff.Path, verb event.Verb) bool {
	return isBookkeeping(p) || verb == event.Replaced && isMetadata(p, "uid", "creationTimestamp")
}

// isMetadata reports whether a path leads to one of these fields of the metadata.
func isMetadata(p diff.Path, names ...string) bool {
	return len(p) == 2 && p[0].Name == "metadata" && slices.Contains(names, p[1].Name)
}

// fields returns the differences with hidden values replaced.
func (o *Observer) fields(changed []diff.Difference, full, safe pair) []event.Field {
	var fields []event.Field
	applied, over := -1, graceIsOver(full)
	type place struct {
		path string
		op   event.Op
	}
	hiddenAt := map[place]int{} // in fields
	for _, d := range changed {
		f := event.Field{Path: d.Path.String(), Op: d.Op, From: d.From, To: d.To}
		if len(o.hide) > 0 {
			f = shown(d, full, safe)
		}
		f.Class = o.beats.classOf(d)
		if over && isMetadata(d.Path, "deletionTimestamp", "deletionGracePeriodSeconds") {
			f.Class = event.Status
		}
		// Several differences may be below one hidden value. They are one, and a
		// heartbeat only if all of them are.
		if f.Hidden {
			at := place{f.Path, f.Op}
			if i, known := hiddenAt[at]; known {
				if fields[i].Class == event.Heartbeat {
					fields[i].Class = f.Class
				}
				continue
			}
			hiddenAt[at] = len(fields)
		}
		if len(d.Path) == 3 && d.Path[0].Name == "metadata" && d.Path[2].Name == lastApplied {
			applied = len(fields)
		}
		fields = append(fields, f)
	}
	// The annotation follows the content and says nothing that the content does not.
	if applied >= 0 && slices.ContainsFunc(fields, func(f event.Field) bool { return f.Class == event.Content }) {
		fields = slices.Delete(fields, applied, applied+1)
	}
	return fields
}

// graceIsOver reports whether an object that was being deleted has no time left. Its deletion
// follows at once. As content, both would say the same.
func graceIsOver(full pair) bool {
	was, is := jsontree.Tree{Value: full.old}.At("metadata"), jsontree.Tree{Value: full.new}.At("metadata")
	const grace = "deletionGracePeriodSeconds"
	return was.Number(0, grace) > 0 && is.Number(-1, grace) == 0 && len(is.List("finalizers")) == 0
}

// hidden returns an object without what is to be hidden.
func (o *Observer) hidden(tree map[string]any) map[string]any {
	if len(o.hide) == 0 || tree == nil {
		return tree
	}
	return o.hiddenAs(tree, tree)
}

// hiddenAs returns an object without what is to be hidden, with the tags that the values would have in
// another object.
func (o *Observer) hiddenAs(tree, other map[string]any) map[string]any {
	if len(o.hide) == 0 || tree == nil {
		return tree
	}
	h := hiding{key: o.key, uid: identityOf(types.UID(text(other, "uid")), object.Key{Namespace: text(other, "namespace"), Name: text(other, "name")})}
	return h.object(tree, o.hide)
}

// withoutManagedFields returns the tree without them, copied as far as it must be.
func withoutManagedFields(tree map[string]any) map[string]any {
	metadata, _ := tree["metadata"].(map[string]any)
	if _, ok := metadata["managedFields"]; !ok {
		return tree
	}
	slim := maps.Clone(metadata)
	delete(slim, "managedFields")
	out := maps.Clone(tree)
	out["metadata"] = slim
	return out
}

func text(tree map[string]any, name string) string {
	return jsontree.Tree{Value: tree}.Text("metadata", name)
}

// identity returns the ID of an event: the same in each process and each time that the change is
// sent. An object is deleted once, whichever of its states was the last that was seen; but it
// may leave a selection more often.
func (o *Observer) identity(e *event.Event) string {
	version := e.Version
	if e.Verb == event.Deleted && !o.selected {
		version = ""
	}
	verb := e.Verb
	if verb == event.Settled {
		verb = event.Updated
	}
	return digestOf(string(verb), e.Kind.String(), identityOf(e.UID, e.Key), version)
}

// digestOf returns 32 hexadecimal digits that are others for other texts.
func digestOf(texts ...string) string {
	var b []byte
	for _, text := range texts {
		b = binary.AppendUvarint(b, uint64(len(text)))
		b = append(b, text...)
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:16])
}

// identityOf returns the UID, or the name of an object whose server gives none.
func identityOf(uid types.UID, key object.Key) string {
	if uid != "" {
		return string(uid)
	}
	return "/" + key.String()
}
