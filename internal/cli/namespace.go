// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"

	"k8s.io/client-go/tools/clientcmd"
)

// Namespace returns the namespace of the kubeconfig's context, or "default".
func (t *Target) Namespace() (string, error) {
	namespace, _, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(t.rules(), &clientcmd.ConfigOverrides{CurrentContext: t.context}).Namespace()
	if err != nil {
		return "", fmt.Errorf("reading the namespace of the kubeconfig: %s", OneLine(err))
	}
	return namespace, nil
}
