// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/klauspost/compress/s2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/wire"
)

// content is what the objects of one informer are.
type content struct {
	gvk      schema.GroupVersionKind
	typ      reflect.Type // of the decoded objects, a pointer
	new      func() object.Object
	managed  bool         // managedFields are kept
	bare     bool         // typed objects have no apiVersion and kind
	messages *wire.Schema // of unstructured objects that are kept as protobuf; nil: none is
	recent   recent
	weights  weights
	budget   *Budget // nil: none
	store    *store  // that has the entries; nil in tests
	stopped  atomic.Bool
	queries  queries
	room     *room     // for entries that are kept as they came; nil: one of their own
	handouts *handouts // nil: mutation is not looked for
}

// form is how the body of an entry is written: an encoding, and the dictionary that
// it is compressed with or the sibling that it is a patch of. A form never changes. It lives
// as long as there are entries written in it.
type form struct {
	*content
	encoding wire.Encoding
	dict     *s2.Dict // nil: none
	base     *entry   // of patches; its body is no patch
}

// scratch is the memory that bodies are unpacked into.
var scratch = sync.Pool{New: func() any { return new([]byte) }}

// decode makes a new object from an entry.
func (e *entry) decode() (object.Object, error) {
	o := e.form.new()
	if err := e.decodeInto(o); err != nil {
		return nil, err
	}
	switch o := o.(type) {
	case *unstructured.Unstructured:
		if o.GetKind() == "" {
			o.SetGroupVersionKind(e.form.gvk)
		}
	case *metav1.PartialObjectMetadata:
		// The server sends no kind, or that of PartialObjectMetadata itself.
		o.SetGroupVersionKind(e.form.gvk)
	}
	return o, nil
}

// decodeInto decodes the body, and gives the object what the entry has beside it.
func (e *entry) decodeInto(o object.Object) error {
	return e.decodeWithout(wire.Path{}, o)
}

// decodeWithout is decodeInto without a top-level field, which may be there nevertheless. The zero Path is
// none.
func (e *entry) decodeWithout(field wire.Path, o object.Object) error {
	err := e.read(func(raw []byte) (err error) {
		if field != (wire.Path{}) {
			if raw, err = e.form.encoding.Without(raw, field); err != nil {
				return err
			}
		}
		if u, ok := o.(*unstructured.Unstructured); ok && e.form.encoding == wire.Protobuf && e.form.messages != nil {
			u.Object, err = e.form.messages.DecodeTree(raw)
			return err
		}
		return e.form.encoding.Decode(raw, o)
	})
	if err != nil {
		return err
	}
	if u, ok := o.(*unstructured.Unstructured); ok && e.form.encoding == wire.Protobuf {
		e.complete(u.Object, nil)
		return nil
	}
	if e.form.encoding != wire.Protobuf {
		e.form.strip(o)
		return nil // the body is whole
	}
	o.SetName(e.nameText())
	o.SetNamespace(e.family.namespace)
	o.SetUID(e.identity())
	o.SetResourceVersion(string(e.at()))
	o.SetLabels(e.family.labels.Map())
	owners := slices.Clone(e.family.owners)
	for i := range owners { // the flags too: who changes an object changes no sibling's
		e.family.owners[i].DeepCopyInto(&owners[i])
	}
	o.SetOwnerReferences(owners)
	o.SetFinalizers(slices.Clone(e.family.finalizerList()))
	return nil
}

// strip empties apiVersion and kind of a typed object, if the informer has no use for them.
func (c *content) strip(o object.Object) {
	if !c.bare {
		return
	}
	switch o.(type) {
	case runtime.Unstructured, *metav1.PartialObjectMetadata:
	default:
		o.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	}
}

// annotations reads the annotations without decoding the object.
func (e *entry) annotations() (notes map[string]string, err error) {
	err = e.read(func(raw []byte) error {
		var head wire.Head
		if err := e.form.encoding.ReadHead(raw, &head); err != nil {
			return err
		}
		notes, err = head.Annotations()
		return err
	})
	return notes, err
}

// read calls f with the body as it was before compression, valid during the call.
func (e *entry) read(f func(raw []byte) error) error {
	if e.packing.whole() {
		return f(bytesOf(e.body()))
	}
	memory := scratch.Get().(*[]byte)
	defer scratch.Put(memory)
	raw, err := e.unpack(memory)
	if err != nil {
		return fmt.Errorf("unpacking: %w", err)
	}
	return f(raw)
}

// encode writes an object that did not come from a server: from a transform, or from
// a test.
func encode(o object.Object) (wire.Encoding, []byte, error) {
	if m, ok := o.(interface{ Marshal() ([]byte, error) }); ok && wire.SpeaksProtobuf(o) {
		raw, err := m.Marshal()
		if err != nil {
			return 0, nil, fmt.Errorf("encoding %T: %w", o, err)
		}
		return wire.Protobuf, raw, nil
	}
	raw, err := json.Marshal(o)
	if err != nil {
		return 0, nil, fmt.Errorf("encoding %T: %w", o, err)
	}
	return wire.JSON, raw, nil
}
