// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/object"
)

// rolePrefix begins the names of the roles. The server has roles of its own for the
// controllers that it knows, which begin with "system:controller:".
const rolePrefix = "setpoint:"

// accounts are the ServiceAccounts of the controllers whose account upstream calls
// otherwise than the controller. They are in rules and audit logs of many a cluster.
// Source: k8s.io/kubernetes/cmd/kube-controller-manager/app, NewClient and NewClientConfig.
var accounts = map[string]string{
	"certificatesigningrequest-approving-controller": "certificate-controller",
	"certificatesigningrequest-cleaner-controller":   "certificate-controller",
	"certificatesigningrequest-signing-controller":   "certificate-controller",
	"endpoints-controller":                           "endpoint-controller",
	"endpointslice-mirroring-controller":             "endpointslicemirroring-controller",
	"garbage-collector-controller":                   "generic-garbage-collector",
	"legacy-serviceaccount-token-cleaner-controller": "legacy-service-account-token-cleaner",
	"node-lifecycle-controller":                      "node-controller",
	"pod-garbage-collector-controller":               "pod-garbage-collector",
	"replicationcontroller-controller":               "replication-controller",
	"root-ca-certificate-publisher-controller":       "root-ca-cert-publisher",
	"serviceaccount-controller":                      "service-account-controller",
	"serviceaccount-token-controller":                "tokens-controller",
	"taint-eviction-controller":                      "node-controller",
}

// Account is the ServiceAccount that a controller runs as, where each has its own: the
// one of kube-controller-manager with --use-service-account-credentials.
func (e Entry) Account() object.Key {
	key := object.Key{Namespace: metav1.NamespaceSystem, Name: e.Name}
	if name, other := accounts[e.Name]; other {
		key.Name = name
	}
	return key
}

// RBAC returns what a cluster must have so that controllers can work with the rights
// that they declare and no others: for each a ClusterRole and a ClusterRoleBinding,
// called "setpoint:" and its name, and the ServiceAccounts that they are bound to. That
// is account for all of them, or, where account is zero, each one's own. It is an error
// if one of them does not declare its rights. The caller owns the result.
func RBAC(entries []Entry, account object.Key) ([]object.Object, error) {
	var serviceAccounts, roles []object.Object
	var made []object.Key
	for _, e := range entries {
		if e.Rights == nil {
			return nil, fmt.Errorf("listing the rights of controllers: %s does not declare which it needs; leave it out", e.Name)
		}
		as := account
		if as.IsZero() {
			as = e.Account()
		}
		if !slices.Contains(made, as) {
			made = append(made, as)
			serviceAccounts = append(serviceAccounts, &corev1.ServiceAccount{
				TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ServiceAccount"},
				ObjectMeta: metav1.ObjectMeta{Namespace: as.Namespace, Name: as.Name},
			})
		}
		name := metav1.ObjectMeta{Name: rolePrefix + e.Name}
		roles = append(roles,
			&rbacv1.ClusterRole{
				TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRole"},
				ObjectMeta: name,
				Rules:      e.Rights(),
			},
			&rbacv1.ClusterRoleBinding{
				TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRoleBinding"},
				ObjectMeta: name,
				RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name.Name},
				Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: as.Namespace, Name: as.Name}},
			})
	}
	return append(serviceAccounts, roles...), nil
}
