// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package object

import (
	"fmt"
	"strings"
)

// Key addresses an object among those of its kind. Namespace is empty for
// objects of cluster-scoped kinds. The zero Key addresses nothing.
//
// A Key is an address, not an identity: after a delete and a create the same Key
// leads to another object. Compare UIDs where that matters.
type Key struct {
	Namespace string
	Name      string
}

// KeyOf returns the key of an object.
func KeyOf(o interface {
	GetNamespace() string
	GetName() string
}) Key {
	return Key{Namespace: o.GetNamespace(), Name: o.GetName()}
}

// String returns "namespace/name", or "name" for a cluster-scoped object.
func (k Key) String() string {
	if k.Namespace == "" {
		return k.Name
	}
	return k.Namespace + "/" + k.Name
}

// IsZero reports whether k addresses nothing.
func (k Key) IsZero() bool { return k == Key{} }

// ParseKey reads what [Key.String] writes: "name" or "namespace/name".
func ParseKey(s string) (Key, error) {
	namespace, name, namespaced := strings.Cut(s, "/")
	if !namespaced {
		namespace, name = "", s
	}
	switch {
	case name == "" || (namespaced && namespace == ""):
		return Key{}, fmt.Errorf("parsing object key %q: want \"name\" or \"namespace/name\", neither part empty", s)
	case strings.Contains(name, "/"):
		return Key{}, fmt.Errorf("parsing object key %q: more than one slash", s)
	}
	return Key{Namespace: namespace, Name: name}, nil
}
