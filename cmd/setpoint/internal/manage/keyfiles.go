// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package manage

import (
	"fmt"
	"os"

	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/cert"

	"github.com/setpoint-io/setpoint/controllers"
)

// keyFiles are the files with what some controllers need and no API server serves. The
// flags are called as those of kube-controller-manager.
type keyFiles struct {
	serviceAccountKey string
	rootCA            string
	signing           signingFiles
}

func (k *keyFiles) flags(flags *pflag.FlagSet) {
	flags.StringVar(&k.serviceAccountKey, "service-account-private-key-file", "", "`file` with the private key that signs service-account tokens; without it serviceaccount-token-controller does not run")
	flags.StringVar(&k.rootCA, "root-ca-file", "", "`file` with the certificates by which Pods know the API server (default: those of the kubeconfig)")
	k.signing.flags(flags)
}

// cluster reads the files. What stands in them never stands in an error.
func (k *keyFiles) cluster(config *rest.Config) (controllers.Cluster, error) {
	var c controllers.Cluster
	var err error
	if k.serviceAccountKey != "" {
		if c.ServiceAccountKey, err = os.ReadFile(k.serviceAccountKey); err != nil {
			return c, fmt.Errorf("--service-account-private-key-file: %w", err)
		}
	}
	switch {
	case k.rootCA != "":
		if c.RootCA, err = os.ReadFile(k.rootCA); err != nil {
			return c, fmt.Errorf("--root-ca-file: %w", err)
		}
		if _, err := cert.ParseCertsPEM(c.RootCA); err != nil {
			return c, fmt.Errorf("--root-ca-file: %s: %w", k.rootCA, err)
		}
	case len(config.CAData) > 0:
		c.RootCA = config.CAData
	case config.CAFile != "":
		if c.RootCA, err = os.ReadFile(config.CAFile); err != nil {
			return c, fmt.Errorf("the kubeconfig's certificate authority: %w", err)
		}
	}
	c.Signing, err = k.signing.files()
	return c, err
}

// ClusterOf returns what controllers need to know of a cluster whose keys are in files: the
// key that signs the tokens of service accounts, and the one authority of the cluster.
func ClusterOf(config *rest.Config, serviceAccountKey string, authority controllers.KeyFiles) (controllers.Cluster, error) {
	files := keyFiles{serviceAccountKey: serviceAccountKey, rootCA: authority.Cert, signing: signingFiles{all: authority}}
	return files.cluster(config)
}
