// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package manage

import (
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"github.com/setpoint-io/setpoint/controllers"
	"github.com/setpoint-io/setpoint/controllers/csrsigning"
)

// signingFiles are the certificate authorities that sign certificates: one for all
// signers, or one for each. The flags are called as those of kube-controller-manager.
type signingFiles struct {
	all  controllers.KeyFiles
	each map[string]*controllers.KeyFiles // by signer
}

// ownFlags is what the flags of a signer's own authority begin with.
func ownFlags(signer string) string {
	flag := "cluster-signing-" + strings.TrimPrefix(signer, "kubernetes.io/")
	// As upstream abbreviates the longest one.
	return strings.Replace(flag, "kube-apiserver-client-kubelet", "kubelet-client", 1)
}

func (s *signingFiles) flags(flags *pflag.FlagSet) {
	flags.StringVar(&s.all.Cert, "cluster-signing-cert-file", "", "`file` with the certificate authority that signs certificates; without one certificatesigningrequest-signing-controller does not run")
	flags.StringVar(&s.all.Key, "cluster-signing-key-file", "", "`file` with its private key")
	s.each = map[string]*controllers.KeyFiles{}
	for _, signer := range csrsigning.Signers() {
		own := &controllers.KeyFiles{}
		s.each[signer] = own
		flags.StringVar(&own.Cert, ownFlags(signer)+"-cert-file", "", "`file` with the authority of "+signer+" alone, instead of one for all")
		flags.StringVar(&own.Key, ownFlags(signer)+"-key-file", "", "`file` with its private key")
	}
}

// files returns what the flags say, by signer. The files are read when something is to be
// signed.
func (s *signingFiles) files() (map[string]controllers.KeyFiles, error) {
	all := map[string]controllers.KeyFiles{}
	for signer, own := range s.each {
		switch {
		case *own == (controllers.KeyFiles{}):
		case own.Cert == "":
			return nil, fmt.Errorf("--%[1]s-cert-file is missing: --%[1]s-key-file alone signs nothing", ownFlags(signer))
		case own.Key == "":
			return nil, fmt.Errorf("--%[1]s-key-file is missing: --%[1]s-cert-file alone signs nothing", ownFlags(signer))
		case s.all != (controllers.KeyFiles{}):
			return nil, fmt.Errorf("--%s-cert-file: --cluster-signing-cert-file gives an authority for all signers; give that one, or one each", ownFlags(signer))
		default:
			all[signer] = *own
		}
	}
	// One of both alone signs nothing, and is no error, as with kube-controller-manager.
	if s.all.Cert != "" && s.all.Key != "" {
		for _, signer := range csrsigning.Signers() {
			all[signer] = s.all
		}
	}
	return all, nil
}
