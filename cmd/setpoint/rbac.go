// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	serializer "k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/setpoint-io/setpoint/controllers/registry"
	"github.com/setpoint-io/setpoint/internal/cli"
	"github.com/setpoint-io/setpoint/lease"
	"github.com/setpoint-io/setpoint/manager"
	"github.com/setpoint-io/setpoint/object"
)

func rbacCommand(w *cli.World) *cobra.Command {
	var (
		controllers []string
		account     string
	)
	c := &cobra.Command{
		Use:   "rbac",
		Short: "Print the rights that the controllers need, for kubectl apply",
		Long: `Print what a cluster must have so that the controllers can work with the rights
that they need and no others: for each a ClusterRole and a ClusterRoleBinding, and
the ServiceAccounts that they are bound to. It connects to nothing.

Without --service-account each has an account of its own in kube-system, called as
the one of kube-controller-manager; who runs as it runs that controller alone. With
it, one account has the rights of all that are chosen, and those of the process:
to hold its lease, and to ask who may see its metrics.`,
		Example: `  # rights for all controllers, and a token to run them with
  setpoint manager rbac --service-account kube-system/setpoint | kubectl apply -f -
  kubectl create token setpoint -n kube-system

  # what one of them may do
  setpoint manager rbac --controllers deployment`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			entries, err := registry.Select(controllers)
			if err != nil {
				return err
			}
			key, err := accountOf(account)
			if err != nil {
				return err
			}
			objects, err := registry.RBAC(entries, key)
			if err != nil {
				return err
			}
			if !key.IsZero() {
				objects = append(objects, processRights(key)...)
			}
			return printYAML(w.Stdout, objects)
		},
	}
	controllersFlag(c, &controllers)
	c.Flags().StringVar(&account, "service-account", "", "`namespace/name` of the account that all of them run as (default: each its own)")
	return c
}

// processRights are what a manager itself must be allowed to do, beside its controllers.
func processRights(account object.Key) []object.Object {
	const role = "setpoint:manager"
	version := rbacv1.SchemeGroupVersion.String()
	cluster := metav1.ObjectMeta{Name: role}
	inNamespace := metav1.ObjectMeta{Namespace: defaultLease.Namespace, Name: role}
	subjects := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: account.Namespace, Name: account.Name}}
	return []object.Object{
		&rbacv1.Role{
			TypeMeta: metav1.TypeMeta{APIVersion: version, Kind: "Role"}, ObjectMeta: inNamespace,
			Rules: lease.Config{Key: defaultLease}.Rights(),
		},
		&rbacv1.RoleBinding{
			TypeMeta: metav1.TypeMeta{APIVersion: version, Kind: "RoleBinding"}, ObjectMeta: inNamespace,
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role}, Subjects: subjects,
		},
		&rbacv1.ClusterRole{
			TypeMeta: metav1.TypeMeta{APIVersion: version, Kind: "ClusterRole"}, ObjectMeta: cluster, Rules: manager.ServingRights(),
		},
		&rbacv1.ClusterRoleBinding{
			TypeMeta: metav1.TypeMeta{APIVersion: version, Kind: "ClusterRoleBinding"}, ObjectMeta: cluster,
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role}, Subjects: subjects,
		},
	}
}

// accountOf reads namespace/name. Empty is the zero Key.
func accountOf(text string) (object.Key, error) {
	if text == "" {
		return object.Key{}, nil
	}
	namespace, name, _ := strings.Cut(text, "/")
	if namespace == "" || name == "" || strings.Contains(name, "/") {
		return object.Key{}, fmt.Errorf("--service-account=%s: want a namespace and a name, such as kube-system/setpoint", text)
	}
	return object.Key{Namespace: namespace, Name: name}, nil
}

// printYAML writes objects as documents of one stream.
func printYAML(out io.Writer, objects []object.Object) error {
	encoder := serializer.NewSerializerWithOptions(serializer.DefaultMetaFactory, scheme.Scheme, scheme.Scheme, serializer.SerializerOptions{Yaml: true})
	for i, o := range objects {
		if i > 0 {
			if _, err := io.WriteString(out, "---\n"); err != nil {
				return err
			}
		}
		if err := encoder.Encode(o, out); err != nil {
			return err
		}
	}
	return nil
}
