// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"bytes"
	"cmp"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"
)

// asGenerated returns YAML documents as "setpoint generate" writes them, so that its first run
// in a new module changes nothing: lines are folded alike, and rights are sorted alike.
func asGenerated(text []byte) ([]byte, error) {
	var all bytes.Buffer
	for document := range bytes.SplitSeq(bytes.TrimPrefix(text, []byte("---\n")), []byte("\n---\n")) {
		var fields map[string]any
		if err := yaml.Unmarshal(document, &fields); err != nil {
			return nil, err
		}
		if _, ok := fields["rules"]; ok {
			var role rbacv1.ClusterRole
			if err := yaml.Unmarshal(document, &role); err != nil {
				return nil, err
			}
			sortRules(role.Rules)
			fields["rules"] = role.Rules
		}
		formatted, err := yaml.Marshal(fields)
		if err != nil {
			return nil, err
		}
		all.WriteString("---\n")
		all.Write(formatted)
	}
	return all.Bytes(), nil
}

// sortRules sorts rights by group, then by resources.
// Source of the order: sigs.k8s.io/controller-tools/pkg/rbac, GenerateRoles.
func sortRules(rules []rbacv1.PolicyRule) {
	slices.SortStableFunc(rules, func(a, b rbacv1.PolicyRule) int {
		return cmp.Or(slices.Compare(a.APIGroups, b.APIGroups), slices.Compare(a.Resources, b.Resources))
	})
}
