// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"

	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/cert"

	"github.com/setpoint-io/setpoint/controllers/registry"
)

// keyFiles are the files that hold what some controllers need and no API server
// tells. The flags are called as those of kube-controller-manager.
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

// options reads the files. What stands in them never stands in an error.
func (k *keyFiles) options(config *rest.Config) (registry.Options, error) {
	var o registry.Options
	var err error
	if k.serviceAccountKey != "" {
		if o.ServiceAccountKey, err = os.ReadFile(k.serviceAccountKey); err != nil {
			return o, fmt.Errorf("--service-account-private-key-file: %w", err)
		}
	}
	switch {
	case k.rootCA != "":
		if o.RootCA, err = os.ReadFile(k.rootCA); err != nil {
			return o, fmt.Errorf("--root-ca-file: %w", err)
		}
		if _, err := cert.ParseCertsPEM(o.RootCA); err != nil {
			return o, fmt.Errorf("--root-ca-file: %s: %w", k.rootCA, err)
		}
	case len(config.CAData) > 0:
		o.RootCA = config.CAData
	case config.CAFile != "":
		if o.RootCA, err = os.ReadFile(config.CAFile); err != nil {
			return o, fmt.Errorf("the kubeconfig's certificate authority: %w", err)
		}
	}
	err = k.signing.into(&o)
	return o, err
}
