(** The step that a proof in Dafny cannot take, for it speaks of programs: a run of a procedure is its log.

    A procedure is verified as a sequential program: for every [data] that it may begin with, if each read returns what
    [data] holds then and each write replaces one object of it ([run]). What happened is another thing: a program called
    a transaction, got answers at many moments, while others ran as well, and left a log ([does]). The state that these answers
    fit is known when the last of them has come (a prophecy, in other proofs).

    But the proof holds for every [data], and the program learns of it by its calls alone. So if the log fits [data]
    ([Kept]), what happened is a sequential run from there. *)
From Tansy Require Export Bridge.

Section programs.
  Context {Obj Res : Type}.

  (** A procedure with its arguments, as far as it touches the volume: it returns, reads an object, writes one, or is
      told something that nothing is promised of: the clock, a hint where to allocate. It ends. *)
  Inductive program :=
    | Ret (r : Res)
    | Read (k : key) (next : Obj → program)
    | Write (k : key) (o : Obj) (next : program)
    | Choose (next : nat → program).

  (** What happened: the program made the accesses [l], the answers to its reads in them, and returned [r]. *)
  Inductive does : program → log Obj → Res → Prop :=
    | does_ret r : does (Ret r) [] r
    | does_read k o next l r : does (next o) l r → does (Read k next) (OpRead k o :: l) r
    | does_write k o next l r : does next l r → does (Write k o next) (OpWrite k o :: l) r
    | does_choose n next l r : does (next n) l r → does (Choose next) l r.

  (** What it is verified as: a sequential program over [data], by the contracts of verified/trusted/txn.s.dfy.
      trusted/txn.s.dfy ReadBlock:
        "ensures Addr(blkno, 0) in volume.data && volume.data[Addr(blkno, 0)] == ObjData(b.v)"
      trusted/txn.s.dfy WriteBlock: "ensures volume.data == old(volume.data)[Addr(blkno, 0) := ObjData(old(b.data))]" *)
  Inductive run : program → gmap key Obj → Res → gmap key Obj → Prop :=
    | run_ret r data : run (Ret r) data r data
    | run_read k o next data r data' : data !! k = Some o → run (next o) data r data' → run (Read k next) data r data'
    | run_write k o next data r data' : run next (<[k:=o]> data) r data' → run (Write k o next) data r data'
    | run_choose n next data r data' : run (next n) data r data' → run (Choose next) data r data'.

  Lemma Kept_read k o l (data : gmap key Obj) : Kept (OpRead k o :: l) data ↔ data !! k = Some o ∧ Kept l data.
  Proof.
    split.
    - intros H. split; [exact (H 0 k o eq_refl)|]. intros i k' o' Hi. exact (H (S i) k' o' Hi).
    - intros [H0 H] [|i] k' o' Hi; simpl in Hi; [injection Hi as -> ->; exact H0|exact (H i k' o' Hi)].
  Qed.
  Lemma Kept_write k o l (data : gmap key Obj) : Kept (OpWrite k o :: l) data ↔ Kept l (<[k:=o]> data).
  Proof.
    split; [intros H i k' o' Hi; exact (H (S i) k' o' Hi)|].
    intros H [|i] k' o' Hi; simpl in Hi; [done|exact (H i k' o' Hi)].
  Qed.

  (** THE LEMMA: what happened, if its log fits [data], is a run from [data]. *)
  Theorem log_is_run p l r data : does p l r → Kept l data → run p data r (Written l data).
  Proof.
    intros Hd. revert data. induction Hd as [r|k o next l r _ IH|k o next l r _ IH|n next l r _ IH]; intros data HK.
    - constructor.
    - apply Kept_read in HK as [H0 HK]. econstructor; [exact H0|]. by apply IH.
    - apply Kept_write in HK. constructor. by apply (IH (<[k:=o]> data)).
    - econstructor. by apply IH.
  Qed.
  (** And there are no other runs: the two ways to speak of a program are the same. *)
  Theorem run_is_log p data r data' : run p data r data' → ∃ l, does p l r ∧ Kept l data ∧ data' = Written l data.
  Proof.
    induction 1 as [r data|k o next data r data' H0 _ (l&?&?&->)|k o next data r data' _ (l&?&?&->)|n next data r data' _ (l&?&?&->)].
    - exists []. split_and!; [constructor| |done]. intros i k o Hi. by destruct i.
    - exists (OpRead k o :: l). split_and!; [by constructor|by apply Kept_read|done].
    - exists (OpWrite k o :: l). split_and!; [by constructor|by apply Kept_write|done].
    - exists l. split_and!; [by econstructor|done|done].
  Qed.

  (** So what is proved of a procedure as a sequential program holds of what happened, at the place of its
      transaction: if [data] was the volume there ([st]), and it led from there to [st1]. *)
  Definition verified (pre : gmap key Obj → Prop) (p : program) (post : gmap key Obj → Res → gmap key Obj → Prop) : Prop :=
    ∀ data r data', pre data → run p data r data' → post data r data'.
  Corollary at_its_place {Vol} keys (cell : Vol → key → Obj) pre p post l r data st st1 :
    verified pre p post → does p l r → Is keys cell data st → Leads keys cell l st st1 → pre data →
    post data r (Written l data) ∧ Is keys cell (Written l data) st1.
  Proof.
    intros HV Hd HI HL Hpre. destruct (AtCommit _ _ _ _ _ _ HI HL) as [HK HI1].
    split; [|done]. eapply HV; [done|]. by apply log_is_run.
  Qed.
End programs.
Arguments program : clear implicits.
