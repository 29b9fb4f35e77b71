// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"fmt"
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/setpoint-io/setpoint/wire"
)

// TreesOf returns the contents of two states of an object, such as those of an [Event], as JSON trees; nil for one that does not
// exist. What is equal in both is decoded once, and is the same map or slice in both trees: they are read-only. The fieldsV1
// of managedFields may be json.RawMessage, not decoded. The trees are made for this call and are not counted in the [Budget].
func TreesOf(before, after Item[*unstructured.Unstructured]) (old, new map[string]any, err error) { //nolint:predeclared // old and new are the words
	if before.entry == nil || after.entry == nil {
		if old, err = before.tree(); err != nil {
			return nil, nil, err
		}
		new, err = after.tree()
		return old, new, err
	}
	if before.Encoding() != after.Encoding() { // the server has begun to send the other one
		if old, err = before.tree(); err != nil {
			return nil, nil, err
		}
		new, err = after.tree()
		return old, new, err
	}
	form := before.entry.form
	err = before.entry.read(func(was []byte) error {
		return after.entry.read(func(is []byte) (err error) {
			if form.encoding == wire.Protobuf {
				old, new, err = form.messages.DecodeTrees(was, is)
			} else {
				old, new, err = wire.DecodeTrees(was, is)
			}
			return err
		})
	})
	if err != nil {
		return nil, nil, fmt.Errorf("reading two states of %s from the cache: %w", after.entry.key(), err)
	}
	if form.encoding == wire.Protobuf {
		shared := &shared{}
		before.entry.complete(old, shared)
		after.entry.complete(new, shared)
	} else {
		form.name(old)
		form.name(new)
	}
	return old, new, nil
}

// tree returns the content of one state, nil if it does not exist.
func (i Item[T]) tree() (tree map[string]any, err error) {
	e := i.entry
	if e == nil {
		return nil, nil
	}
	err = e.read(func(raw []byte) error {
		if e.form.encoding == wire.Protobuf {
			tree, err = e.form.messages.DecodeTreeLazily(raw)
			return err
		}
		var u unstructured.Unstructured
		err = wire.JSON.Decode(raw, &u)
		tree = u.Object
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("reading %s from the cache: %w", e.key(), err)
	}
	if e.form.encoding == wire.Protobuf {
		e.complete(tree, nil)
	} else {
		e.form.name(tree)
	}
	return tree, nil
}

// name gives a tree its apiVersion and kind if the server sent none, as in lists of some kinds.
func (c *content) name(tree map[string]any) {
	if o := (unstructured.Unstructured{Object: tree}); o.GetKind() == "" {
		o.SetGroupVersionKind(c.gvk)
	}
}

// shared is what the trees of two entries of one family have in common.
type shared struct {
	family                     *family
	labels, owners, finalizers any
}

// complete gives the tree of a message what the entry has beside it. s is of the other tree that has the same maps, or nil.
func (e *entry) complete(tree map[string]any, s *shared) {
	apiVersion, kind := e.form.gvk.ToAPIVersionAndKind()
	tree["apiVersion"], tree["kind"] = apiVersion, kind
	metadata, ok := tree["metadata"].(map[string]any)
	if !ok {
		metadata = map[string]any{}
	}
	if s == nil {
		s = &shared{}
	}
	if s.family != e.family {
		*s = shared{family: e.family}
		if labels := e.family.labels.Map(); len(labels) > 0 {
			s.labels = anyMap(labels)
		}
		if len(e.family.owners) > 0 {
			s.owners = ownersTree(e.family.owners)
		}
		if finalizers := e.family.finalizerList(); len(finalizers) > 0 {
			list := make([]any, len(finalizers))
			for i, name := range finalizers {
				list[i] = name
			}
			s.finalizers = list
		}
	}
	// The other tree may have the same map, and another version.
	own := make(map[string]any, len(metadata)+7)
	maps.Copy(own, metadata)
	set := func(name string, value any, there bool) {
		if there {
			own[name] = value
		}
	}
	set("name", e.nameText(), e.name > 0)
	set("namespace", e.family.namespace, e.family.namespace != "")
	set("uid", string(e.identity()), e.uid > 0)
	set("resourceVersion", string(e.at()), e.version > 0)
	set("labels", s.labels, s.labels != nil)
	set("ownerReferences", s.owners, s.owners != nil)
	set("finalizers", s.finalizers, s.finalizers != nil)
	tree["metadata"] = own
}

func anyMap(texts map[string]string) map[string]any {
	tree := make(map[string]any, len(texts))
	for name, value := range texts {
		tree[name] = value
	}
	return tree
}

// ownersTree returns owner references as their JSON is.
func ownersTree(owners []metav1.OwnerReference) []any {
	list := make([]any, len(owners))
	for i, owner := range owners {
		tree := map[string]any{"apiVersion": owner.APIVersion, "kind": owner.Kind, "name": owner.Name, "uid": string(owner.UID)}
		if owner.Controller != nil {
			tree["controller"] = *owner.Controller
		}
		if owner.BlockOwnerDeletion != nil {
			tree["blockOwnerDeletion"] = *owner.BlockOwnerDeletion
		}
		list[i] = tree
	}
	return list
}
