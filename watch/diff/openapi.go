// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package diff

import "maps"

// FromCRD returns the schema of one version of a custom resource, from its
// CustomResourceDefinition as a JSON tree, and whether the definition has that version.
// FromCRD accepts any tree, and ignores what it does not understand. The schema of the
// metadata is that of every object.
func FromCRD(crd map[string]any, version string) (Schema, bool) {
	spec, _ := crd["spec"].(map[string]any)
	versions, _ := spec["versions"].([]any)
	for _, v := range versions {
		v, _ := v.(map[string]any)
		if name, _ := v["name"].(string); name != version || name == "" {
			continue
		}
		s, _ := v["schema"].(map[string]any)
		tree, _ := s["openAPIV3Schema"].(map[string]any)
		root := &node{fields: map[string]*node{}}
		if n := openAPI(tree, 0); n != nil {
			root.each = n.each
			maps.Copy(root.fields, n.fields)
		}
		root.fields["metadata"] = metadata()
		return Schema{root: root}, true
	}
	return Schema{}, false
}

// openAPI returns the node of an OpenAPI v3 schema, nil for one without lists.
// Source of the names: https://kubernetes.io/docs/reference/using-api/server-side-apply/#merge-strategy.
func openAPI(tree map[string]any, depth int) *node {
	if len(tree) == 0 || depth > maxDepth {
		return nil
	}
	var n node
	child := func(v any) *node {
		m, _ := v.(map[string]any)
		return openAPI(m, depth+1)
	}
	properties, _ := tree["properties"].(map[string]any)
	for name, p := range properties {
		if f := child(p); f != nil {
			if n.fields == nil {
				n.fields = map[string]*node{}
			}
			n.fields[name] = f
		}
	}
	if n.each = child(tree["additionalProperties"]); n.each == nil {
		n.each = child(tree["items"])
	}
	switch tree["x-kubernetes-list-type"] {
	case "map":
		keys, _ := tree["x-kubernetes-list-map-keys"].([]any)
		for _, k := range keys {
			if k, ok := k.(string); ok {
				n.keys = append(n.keys, k)
			}
		}
	case "set":
		n.set = true
	}
	if embedded, _ := tree["x-kubernetes-embedded-resource"].(bool); embedded && n.fields == nil {
		n.fields = map[string]*node{"metadata": metadata()}
	}
	if n.fields == nil && n.each == nil && n.keys == nil && !n.set {
		return nil
	}
	return &n
}
