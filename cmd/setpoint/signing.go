// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/setpoint-io/setpoint/controllers/csrsigning"
	"github.com/setpoint-io/setpoint/controllers/registry"
)

// signingFiles are the certificate authorities that sign certificates: one for all
// signers, or one for each. The flags are called as those of kube-controller-manager.
type signingFiles struct {
	all      authorityFiles
	each     map[string]*authorityFiles // by signer
	duration time.Duration
}

type authorityFiles struct{ cert, key string }

// ownFlags is what the flags of a signer's own authority begin with.
func ownFlags(signer string) string {
	flag := "cluster-signing-" + strings.TrimPrefix(signer, "kubernetes.io/")
	// As upstream abbreviates the longest one.
	return strings.Replace(flag, "kube-apiserver-client-kubelet", "kubelet-client", 1)
}

func (s *signingFiles) flags(flags *pflag.FlagSet) {
	flags.StringVar(&s.all.cert, "cluster-signing-cert-file", "", "`file` with the certificate authority that signs certificates; without one certificatesigningrequest-signing-controller does not run")
	flags.StringVar(&s.all.key, "cluster-signing-key-file", "", "`file` with its private key")
	flags.DurationVar(&s.duration, "cluster-signing-duration", csrsigning.LongestLifetime, "how long a certificate lasts at most")
	s.each = map[string]*authorityFiles{}
	for _, signer := range csrsigning.Signers() {
		own := &authorityFiles{}
		s.each[signer] = own
		flags.StringVar(&own.cert, ownFlags(signer)+"-cert-file", "", "`file` with the authority of "+signer+" alone, instead of one for all")
		flags.StringVar(&own.key, ownFlags(signer)+"-key-file", "", "`file` with its private key")
	}
}

// stopped says why nothing is signed at all, if a flag has it so: certificates that last for no
// time are of no use.
func (s *signingFiles) stopped() (why string) {
	if s.duration > 0 {
		return ""
	}
	return fmt.Sprintf("--cluster-signing-duration=%s", s.duration)
}

// into adds what the flags say to the controllers' options. The files are read when
// something is to be signed.
func (s *signingFiles) into(o *registry.Options) error {
	o.SigningDuration = max(s.duration, 0)
	shared, err := s.all.source("cluster-signing")
	if err != nil && s.all.cert != "" && s.all.key != "" {
		return err
	}
	// One of both alone signs nothing, and is no error, as with kube-controller-manager.
	if shared != nil {
		o.SigningAuthorities = csrsigning.ForAll(shared)
	}
	for signer, files := range s.each {
		own, err := files.source(ownFlags(signer))
		if err != nil {
			return err
		}
		if own == nil {
			continue
		}
		if s.all != (authorityFiles{}) {
			return fmt.Errorf("--%s-cert-file: --cluster-signing-cert-file gives an authority for all signers; give that one, or one each", ownFlags(signer))
		}
		if o.SigningAuthorities == nil {
			o.SigningAuthorities = map[string]csrsigning.Source{}
		}
		o.SigningAuthorities[signer] = own
	}
	return nil
}

// source returns the authority of two flags, or nil if neither is given.
func (f authorityFiles) source(flag string) (csrsigning.Source, error) {
	switch {
	case f.cert == "" && f.key == "":
		return nil, nil
	case f.cert == "":
		return nil, errors.New("--" + flag + "-cert-file is missing: --" + flag + "-key-file alone signs nothing")
	case f.key == "":
		return nil, errors.New("--" + flag + "-key-file is missing: --" + flag + "-cert-file alone signs nothing")
	}
	return csrsigning.Files(f.cert, f.key), nil
}
