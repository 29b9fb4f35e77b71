// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"cmp"
	"reflect"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/setpoint-io/setpoint/client"
)

// selection identifies an informer: users of equal selections share one.
type selection struct {
	kind        schema.GroupVersionKind
	typ         reflect.Type // of the objects: one kind may be read into two types
	selection   client.Selection
	managed     bool
	transformed bool
	bare        bool // typed objects have no apiVersion and kind
	alone       int  // the number of an informer that is not shared; 0: it is
}

// shared returns the informer that serves a selection. An informer of whole objects serves for
// their metadata too, unless the user needs objects of exactly the type.
func (f *Factory) shared(key selection, exact bool) *informer {
	if i := f.informers[key]; i != nil || !key.selection.MetadataOnly || exact {
		return i
	}
	for other, i := range f.informers {
		other.selection.MetadataOnly, other.selection.JSONOnly, other.typ = true, key.selection.JSONOnly, key.typ
		if other == key {
			return i
		}
	}
	return nil
}

// logOverlap logs where two informers hold the same objects and cannot be shared, which takes
// the memory twice. It is for those who look for memory: several controllers of one process
// may well need it.
func (f *Factory) logOverlap(key selection, i *informer) {
	for other, o := range f.informers {
		if other.kind == key.kind && (!o.chosen.partial() || !i.chosen.partial()) {
			f.log.Debug("two informers cache the same kind with different selectors",
				"kind", i.name, "one", o.says(), "other", i.says())
		}
	}
}

// says describes what the informer holds, for the log.
func (i *informer) says() string {
	text := cmp.Or(i.selects, "all, whole")
	if typ := i.content.typ.Elem(); typ.Name() != i.kind.Kind && typ != reflect.TypeFor[metav1.PartialObjectMetadata]() {
		text += ", as " + typ.String()
	}
	return text
}

// String describes the selection. It is empty for all objects.
func (s selection) String() string {
	var parts []string
	add := func(is bool, text string) {
		if is {
			parts = append(parts, text)
		}
	}
	add(s.selection.Namespace != "", "in "+s.selection.Namespace)
	add(s.selection.Labels != "", "with labels "+s.selection.Labels)
	add(s.selection.Fields != "", "with fields "+s.selection.Fields)
	add(s.selection.MetadataOnly, "metadata")
	add(s.managed, "managed fields")
	add(s.transformed, "transformed")
	return strings.Join(parts, ", ")
}
