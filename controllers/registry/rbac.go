// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/controllers"
	"github.com/setpoint-io/setpoint/object"
)

// rolePrefix begins the names of the roles. The server has roles of its own for the
// controllers that it knows, which begin with "system:controller:".
const rolePrefix = "setpoint:"

// RBAC returns what a cluster must have so that controllers can work with the rights
// that they declare and no others: for each a ClusterRole and a ClusterRoleBinding, or a
// Role and a RoleBinding in each namespace in which its rights hold, called "setpoint:" and
// its name, and the ServiceAccounts that they are bound to. That
// is account for all of them, or, where account is zero, each one's own. It is an error
// if one of them does not declare its rights. The caller owns the result.
func RBAC(of []*controllers.Descriptor, account object.Key) ([]object.Object, error) {
	var serviceAccounts, roles []object.Object
	var made []object.Key
	for _, d := range of {
		rights := d.Rights()
		if len(rights) == 0 {
			return nil, fmt.Errorf("listing the rights of controllers: %s does not declare which it needs; leave it out", d.Name)
		}
		as := account
		if as.IsZero() {
			as = d.Account()
		}
		if !slices.Contains(made, as) {
			made = append(made, as)
			serviceAccounts = append(serviceAccounts, &corev1.ServiceAccount{
				TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ServiceAccount"},
				ObjectMeta: metav1.ObjectMeta{Namespace: as.Namespace, Name: as.Name},
			})
		}
		roles = append(roles, Bind(rolePrefix+d.Name, as, rights)...)
	}
	return append(serviceAccounts, roles...), nil
}

// Bind returns the roles of a name that have these rules, and their bindings to an account:
// cluster roles first, then by namespace. The caller owns the result.
func Bind(name string, account object.Key, rules controllers.Rules) []object.Object {
	subjects := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: account.Namespace, Name: account.Name}}
	kind := func(kind string) metav1.TypeMeta {
		return metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: kind}
	}
	var all []object.Object
	for _, namespace := range slices.Sorted(maps.Keys(rules)) {
		meta := metav1.ObjectMeta{Namespace: namespace, Name: name}
		role := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name}
		switch {
		case len(rules[namespace]) == 0:
		case namespace == "":
			role.Kind = "ClusterRole"
			all = append(all,
				&rbacv1.ClusterRole{TypeMeta: kind("ClusterRole"), ObjectMeta: meta, Rules: rules[namespace]},
				&rbacv1.ClusterRoleBinding{TypeMeta: kind("ClusterRoleBinding"), ObjectMeta: meta, RoleRef: role, Subjects: subjects})
		default:
			all = append(all,
				&rbacv1.Role{TypeMeta: kind("Role"), ObjectMeta: meta, Rules: rules[namespace]},
				&rbacv1.RoleBinding{TypeMeta: kind("RoleBinding"), ObjectMeta: meta, RoleRef: role, Subjects: subjects})
		}
	}
	return all
}
