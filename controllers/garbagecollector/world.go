// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package garbagecollector

import (
	"context"
	"errors"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/object"
)

// world is what the collector reads and writes, beside the graph: a server, or what
// stands for one in a test.
type world interface {
	// resource returns how the server serves objects of a kind, and false for a kind that
	// is not served.
	resource(k kind) (object.Resource, bool)
	// shown returns what an informer shows of an object. It may be old.
	shown(t target) (object.Meta, bool)
	// get reads from the server.
	get(ctx context.Context, r object.Resource, key object.Key) (object.Meta, error)
	// delete deletes an object if it has the UID, and, unless version is "", has
	// not changed since. Otherwise it is a conflict.
	delete(ctx context.Context, r object.Resource, key object.Key, uid types.UID, version object.Version, policy metav1.DeletionPropagation) error
	// change changes an object as it was in m. It is a conflict if another object
	// has the name, and may be one if the object has changed since.
	change(ctx context.Context, r object.Resource, m *object.Meta, c change) error
}

// change is a change to the metadata of an object. The zero change is none.
type change struct {
	drop      []types.UID // owners whose references are removed
	unblock   []types.UID // owners that need not wait for the object any more
	finalizer string      // that is removed
}

// of returns the part of a change that an object as in m does not have yet.
func (c change) of(m *object.Meta) change {
	has := func(uid types.UID, blocking bool) bool {
		return slices.ContainsFunc(m.OwnerReferences, func(o metav1.OwnerReference) bool {
			return o.UID == uid && (!blocking || blocks(&o))
		})
	}
	var left change
	for _, uid := range c.drop {
		if has(uid, false) {
			left.drop = append(left.drop, uid)
		}
	}
	for _, uid := range c.unblock {
		if has(uid, true) {
			left.unblock = append(left.unblock, uid)
		}
	}
	if slices.Contains(m.Finalizers, c.finalizer) {
		left.finalizer = c.finalizer
	}
	return left
}

func (c change) isNone() bool { return len(c.drop)+len(c.unblock) == 0 && c.finalizer == "" }

// owners returns the references of an object after the change.
func (c change) owners(refs []metav1.OwnerReference) []metav1.OwnerReference {
	left := slices.DeleteFunc(slices.Clone(refs), func(o metav1.OwnerReference) bool { return slices.Contains(c.drop, o.UID) })
	for i := range left {
		if slices.Contains(c.unblock, left[i].UID) {
			left[i].BlockOwnerDeletion = new(false)
		}
	}
	return left
}

// server is the world as an API server has it.
type server struct {
	client *client.Client
	*kinds
}

func (s server) metadata(r object.Resource) client.Typed[*metav1.PartialObjectMetadata] {
	return client.ForResource[*metav1.PartialObjectMetadata](s.client, r)
}

func (s server) get(ctx context.Context, r object.Resource, key object.Key) (object.Meta, error) {
	o, err := s.metadata(r).Get(ctx, key)
	if err != nil {
		return object.Meta{}, err
	}
	return object.MetaOf(o), nil
}

func (s server) delete(ctx context.Context, r object.Resource, key object.Key, uid types.UID, version object.Version, policy metav1.DeletionPropagation) error {
	options := []client.DeleteOption{client.IfUID(uid), client.Propagation(policy)}
	if version != "" {
		options = append(options, client.IfVersion(version))
	}
	return s.metadata(r).Delete(ctx, key, options...)
}

// change sends a strategic merge patch where the server takes one: it names single
// references and needs no resourceVersion, so that an object that changes all the time
// can be changed too. Custom kinds take a merge patch. So do finalizers: a merge patch
// with a resourceVersion cannot remove one from a list that has changed.
func (s server) change(ctx context.Context, r object.Resource, m *object.Meta, c change) error {
	patch, err := c.patch(m, c.finalizer == "" && client.Builtin(r.GroupVersionKind().GroupKind()))
	if err != nil {
		return err
	}
	_, err = s.metadata(r).Patch(ctx, m.Key, patch)
	if apierrors.IsUnsupportedMediaType(err) {
		// Another server serves a kind with a built-in kind's name.
		if patch, err = c.patch(m, false); err != nil {
			return err
		}
		_, err = s.metadata(r).Patch(ctx, m.Key, patch)
	}
	return err
}

// patch returns a change as a patch of m.
func (c change) patch(m *object.Meta, strategic bool) (client.Patch, error) {
	metadata := map[string]any{"uid": m.UID}
	if strategic {
		var refs []any
		for _, uid := range c.drop {
			refs = append(refs, map[string]any{"$patch": "delete", "uid": uid})
		}
		for _, uid := range c.unblock {
			refs = append(refs, map[string]any{"uid": uid, "blockOwnerDeletion": false})
		}
		metadata["ownerReferences"] = refs
		return client.StrategicPatch(map[string]any{"metadata": metadata})
	}
	if m.Version == "" {
		return client.Patch{}, errors.New("changing an object: its resourceVersion is not known")
	}
	metadata["resourceVersion"] = m.Version
	if len(c.drop)+len(c.unblock) > 0 {
		metadata["ownerReferences"] = c.owners(m.OwnerReferences)
	}
	if c.finalizer != "" {
		metadata["finalizers"] = slices.DeleteFunc(slices.Clone(m.Finalizers), func(f string) bool { return f == c.finalizer })
	}
	return client.MergePatch(map[string]any{"metadata": metadata})
}
