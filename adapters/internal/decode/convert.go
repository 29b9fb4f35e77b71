// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package decode

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/object"
)

// ToUnstructured returns a typed object as a tree of maps, which is the caller's. Fields that the
// Go type does not have are not in it.
func ToUnstructured(typed object.Object, kind schema.GroupVersionKind) (*unstructured.Unstructured, error) {
	tree, err := runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
	if err != nil {
		return nil, fmt.Errorf("making %s %s unstructured: %w", kind.Kind, object.KeyOf(typed), err)
	}
	u := &unstructured.Unstructured{Object: tree}
	u.SetGroupVersionKind(kind)
	return u, nil
}

// HolderOfIndex is how the detector of changed objects names the function of an index. The index is what a program knows by name.
func HolderOfIndex(name string) string { return fmt.Sprintf("the function of the index %q", name) }

// Tombstone is what a handler of client-go gets for a deletion that no watch reported: the last
// state that the informer has seen, which may not be the last one that there was.
func Tombstone(o object.Object) toolscache.DeletedFinalStateUnknown {
	return toolscache.DeletedFinalStateUnknown{Key: object.KeyOf(o).String(), Obj: o}
}

// TombstoneOfMetadata is as Tombstone, for an object whose content cannot be decoded. o is an empty
// object of the type that the handler gets: it has the metadata alone.
func TombstoneOfMetadata(item cache.Item[object.Object], o object.Object) toolscache.DeletedFinalStateUnknown {
	var m metav1.PartialObjectMetadata
	if err := item.DecodeInto(&m); err != nil { // then what the cache itself reads of each object
		known := item.Meta()
		m.UID, m.ResourceVersion, m.Labels = known.UID, string(known.Version), known.Labels.Map()
	}
	o.SetNamespace(item.Key().Namespace)
	o.SetName(item.Key().Name)
	o.SetUID(m.UID)
	o.SetResourceVersion(m.ResourceVersion)
	o.SetGeneration(m.Generation)
	o.SetCreationTimestamp(m.CreationTimestamp)
	o.SetDeletionTimestamp(m.DeletionTimestamp)
	o.SetDeletionGracePeriodSeconds(m.DeletionGracePeriodSeconds)
	o.SetLabels(m.Labels)
	o.SetAnnotations(m.Annotations)
	o.SetOwnerReferences(m.OwnerReferences)
	o.SetFinalizers(m.Finalizers)
	return Tombstone(o)
}
