(** From logs to the contract that the procedures are verified against, verified/trusted/txn.s.dfy. There a procedure is a
    sequential program over [data], the volume as its transaction sees it.

    A transcript of verified/txn/bridge.dfy, proved again. *)
From Tansy Require Export History.

Section bridge.
  Context {Obj Vol : Type} (keys : gset key) (cell : Vol → key → Obj).
  Implicit Types (l : log Obj) (data : gmap key Obj) (st : Vol).

  (* data is the state st of the volume.
     txn/bridge.dfy Is: "OkKinds(kinds) && forall a: Addr {:trigger a in data} | OkAddr(kinds, a) :: a in data &&"
     txn/bridge.dfy Is: "data[a] == Cell(st, kinds, Key(a.blkno, a.off))" *)
  Definition Is data st : Prop := ∀ k, k ∈ keys → data !! k = Some (cell st k).
  (* data after the calls l, as the contracts of the writes have it.
     txn/bridge.dfy Written: "if l == [] then data else var e := l[|l|-1];"
     txn/bridge.dfy Written:
       "if e.OpWrite? then Written(l[..|l|-1], data)[AddrOf(e.key) := e.value] else Written(l[..|l|-1], data)" *)
  Definition Written l data : gmap key Obj := foldl write data l.
  (* each read of l returned what the contracts of the reads say.
     txn/bridge.dfy Kept:
       "forall i {:trigger l[i]} :: 0 <= i < |l| && l[i].OpRead? ==> AddrOf(l[i].key) in Written(l[..i], data) &&"
     txn/bridge.dfy Kept: "Written(l[..i], data)[AddrOf(l[i].key)] == l[i].value" *)
  Definition Kept l data : Prop := ∀ i k o, l !! i = Some (OpRead k o) → Written (take i l) data !! k = Some o.

  Lemma Written_so l data k : Written l data !! k = match Writes l !! k with Some o => Some o | None => data !! k end.
  Proof.
    induction l as [|e l IH] using rev_ind; [done|].
    unfold Written in *. rewrite foldl_app Writes_snoc /=. destruct e as [k' o|k' o]; simpl; [done|].
    destruct (decide (k = k')) as [->|]; [by rewrite !lookup_insert|by rewrite !lookup_insert_ne].
  Qed.
  Lemma Written_is l data st k : Is data st → k ∈ keys → Written l data !! k = Some (After cell l st k).
  Proof. intros HI Hk. rewrite Written_so /After (HI k Hk). by destruct (Writes l !! k). Qed.

  (* txn/bridge.dfy Contract: "lemma Contract(kinds: Kinds, l: Log, data: Data, st: Vol)" *)
  Lemma Contract l data st : Is data st → Finds keys cell l st → Kept l data.
  Proof. intros HI HF i k o Hi. destruct (HF i k o Hi) as [Hk ->]. by apply Written_is. Qed.
  (* txn/bridge.dfy AtCommit: "lemma AtCommit(kinds: Kinds, l: Log, data: Data, st: Vol, st1: Vol)" *)
  Lemma AtCommit l data st st1 : Is data st → Leads keys cell l st st1 → Kept l data ∧ Is (Written l data) st1.
  Proof.
    intros HI HL. split; [by eapply Contract, HL|].
    intros k Hk. rewrite (Leads_cell _ _ _ _ _ _ HL Hk). by apply Written_is.
  Qed.

  (** There is such a [data] for each state.
      txn/bridge.dfy DataIs: "lemma DataIs(kinds: Kinds, st: Vol)" *)
  Definition DataOf st : gmap key Obj := set_to_map (λ k, (k, cell st k)) keys.
  Lemma DataIs st : Is (DataOf st) st.
  Proof. intros k Hk. apply lookup_set_to_map; [done|]. by exists k. Qed.
End bridge.
