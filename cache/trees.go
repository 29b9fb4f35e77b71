// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/setpoint-io/setpoint/wire"
)

// TreesOf returns the contents of two states of an object, such as those of an [Event], as JSON trees; nil for one that does not
// exist. What is equal in both is decoded once, and is the same map or slice in both trees: they are read-only. They are
// made for this call and are not counted in the [Budget].
func TreesOf(before, after Item[*unstructured.Unstructured]) (old, new map[string]any, err error) { //nolint:predeclared // old and new are the words
	if before.entry == nil || after.entry == nil || before.Encoding() != wire.JSON || after.Encoding() != wire.JSON {
		if old, err = treeOf(before); err != nil {
			return nil, nil, err
		}
		new, err = treeOf(after)
		return old, new, err
	}
	err = before.entry.read(func(was []byte) error {
		return after.entry.read(func(is []byte) (err error) {
			old, new, err = wire.DecodeTrees(was, is)
			return err
		})
	})
	if err != nil {
		return nil, nil, fmt.Errorf("reading two states of %s from the cache: %w", after.entry.key(), err)
	}
	before.entry.form.name(old)
	after.entry.form.name(new)
	return old, new, nil
}

func treeOf(item Item[*unstructured.Unstructured]) (map[string]any, error) {
	if !item.Exists() {
		return nil, nil
	}
	o, err := item.Object()
	if err != nil {
		return nil, err
	}
	return o.Object, nil
}

// name gives a tree its apiVersion and kind if the server sent none, as in lists of some kinds.
func (c *content) name(tree map[string]any) {
	if o := (unstructured.Unstructured{Object: tree}); o.GetKind() == "" {
		o.SetGroupVersionKind(c.gvk)
	}
}
