// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package manage

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/controllers"
	"github.com/setpoint-io/setpoint/controllers/registry"
	"github.com/setpoint-io/setpoint/internal/announce"
	"github.com/setpoint-io/setpoint/lease"
	"github.com/setpoint-io/setpoint/manager/serving"
	"github.com/setpoint-io/setpoint/object"
)

// processRights are what a manager itself must be allowed to do, beside its controllers.
type processRights struct {
	account     object.Key                // of the process; zero: none
	controllers []*controllers.Descriptor // that work as accounts of their own, for which it reads
}

// objects are the roles and bindings, and the account where no controller has it.
func (p processRights) objects() []object.Object {
	if p.account.IsZero() {
		return nil
	}
	rules := registry.InformerRights(p.controllers)
	rules[""] = append(rules[""], serving.Rights()...)
	// Where the lease is, the accounts of controllers are as well, and what API servers
	// publish.
	own := slices.Concat(lease.Config{Key: defaultLease}.Rights(), serving.LookupRights(), announce.Rights(), p.accountRights())
	rules[defaultLease.Namespace] = append(rules[defaultLease.Namespace], own...)
	all := registry.Bind("setpoint:manager", p.account, rules)
	if len(p.controllers) == 0 {
		return all
	}
	return append([]object.Object{&corev1.ServiceAccount{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ServiceAccount"},
		ObjectMeta: metav1.ObjectMeta{Namespace: p.account.Namespace, Name: p.account.Name},
	}}, all...)
}

// accountRights are for tokens of the controllers' accounts, and for accounts that are not
// there.
func (p processRights) accountRights() []rbacv1.PolicyRule {
	if len(p.controllers) == 0 {
		return nil
	}
	var names []string
	for _, d := range p.controllers {
		names = append(names, d.Account().Name)
	}
	slices.Sort(names)
	return []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"serviceaccounts"}, Verbs: []string{"create"}},
		{APIGroups: []string{""}, Resources: []string{"serviceaccounts/token"}, ResourceNames: slices.Compact(names), Verbs: []string{"create"}},
	}
}
