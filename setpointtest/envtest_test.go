// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package setpointtest

import (
	"os"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
)

func TestEnvtestFindsTheClusterUntilTheTestEnds(t *testing.T) {
	t.Setenv("USE_EXISTING_CLUSTER", "")
	t.Setenv("KUBECONFIG", "/elsewhere")
	var cluster *Environment
	t.Run("suite", func(t *testing.T) {
		cluster = ForEnvtest(t)
		if value := os.Getenv("USE_EXISTING_CLUSTER"); value != "true" {
			t.Errorf("USE_EXISTING_CLUSTER is %q, want true", value)
		}
		// As envtest and kubectl read it.
		config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(clientcmd.NewDefaultClientConfigLoadingRules(), nil).ClientConfig()
		if err != nil {
			t.Fatal(err)
		}
		if config.Host != cluster.Config.Host {
			t.Errorf("KUBECONFIG leads to %s, want %s", config.Host, cluster.Config.Host)
		}
	})
	if existing, kubeconfig := os.Getenv("USE_EXISTING_CLUSTER"), os.Getenv("KUBECONFIG"); existing != "" || kubeconfig != "/elsewhere" {
		t.Errorf("after the suite the variables are %q and %q, want those from before", existing, kubeconfig)
	}
}
