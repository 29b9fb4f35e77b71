// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package manage

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime"
	serializer "k8s.io/apimachinery/pkg/runtime/serializer/json"

	"github.com/setpoint-io/setpoint/controllers/registry"
	"github.com/setpoint-io/setpoint/internal/cli"
	"github.com/setpoint-io/setpoint/object"
)

func rbacCommand(w *cli.World) *cobra.Command {
	var (
		controllers []string
		account     string
		own         bool
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
to hold its lease, to ask who may see its metrics, and to read whose certificates
are believed there. With --use-service-account-credentials, as for the manager, each
has its own account, and the one of --service-account is that of the process, which
reads for all of them and may have their tokens.`,
		Example: `  # rights for all controllers, and a token to run them with
  setpoint manager rbac --service-account kube-system/setpoint | kubectl apply -f -
  kubectl create token setpoint -n kube-system

  # the same for a manager whose controllers work as accounts of their own
  setpoint manager rbac --service-account kube-system/setpoint --use-service-account-credentials

  # what one of them may do
  setpoint manager rbac --controllers deployment`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			entries, err := registry.Select(registry.Known(), controllers)
			if err != nil {
				return err
			}
			key, err := accountOf(account)
			if err != nil {
				return err
			}
			process := processRights{account: key}
			if own {
				if key.IsZero() {
					return errors.New("--use-service-account-credentials: --service-account is missing, which names the account of the process")
				}
				process.controllers, key = entries, object.Key{}
			}
			objects, err := registry.RBAC(entries, key)
			if err != nil {
				return err
			}
			return printYAML(w.Stdout, append(objects, process.objects()...))
		},
	}
	ControllersFlag(c, &controllers)
	c.Flags().StringVar(&account, "service-account", "", "`namespace/name` of the account that all of them run as (default: each its own)")
	c.Flags().BoolVar(&own, "use-service-account-credentials", false, "for a manager with this flag: each controller has an account of its own, and --service-account names that of the process")
	return c
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
	none := runtime.NewScheme() // what is only written needs no types
	encoder := serializer.NewSerializerWithOptions(serializer.DefaultMetaFactory, none, none, serializer.SerializerOptions{Yaml: true})
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
